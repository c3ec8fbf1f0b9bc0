// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// extSupportedVersions is the TLS extension without which TLS 1.3 is not
// negotiated, whatever the hello's legacy version says (RFC 8446, 4.2.1).
const extSupportedVersions = 43

// extSessionTicket is the TLS extension session_ticket (RFC 5077), by which a
// TLS 1.2 client offers a session, or says that it takes one.
const extSessionTicket = 35

// extChainSchemes is the TLS extension signature_algorithms_cert.
const extChainSchemes = 50

// helloOf returns what a key manager may know of a client's hello. Its Auth is
// zero where no credential whatever could serve the connection: an older
// version than TLS 1.2 is negotiated, or no cipher suite or group is common.
func helloOf(info *tls.ClientHelloInfo, hs *handshake) *keymanager.Hello {
	version, auth := negotiated(info)
	return &keymanager.Hello{
		Role:       keymanager.RoleServer,
		Listener:   hs.listener,
		Alias:      hs.alias,
		ServerName: strings.TrimSuffix(strings.ToLower(info.ServerName), "."),
		Version:    version,
		Auth:       auth,
		Schemes:    info.SignatureSchemes,
		Groups:     info.SupportedCurves,
		ALPN:       info.SupportedProtos,
		ConnID:     hs.id,
		Peer:       hs.peer,

		ChainsElsewhere: slices.Contains(info.Extensions, extChainSchemes),
	}
}

// negotiated returns the version that will be negotiated and the
// authentication algorithms that the common cipher suites allow.
//
// Both depend on the server's tls.Config, which the caller may have changed and
// which info keeps to itself. But SupportsCertificate looks at it, so copies of
// info that offer one version and no name ask it about certificates that exist
// for the asking only. In TLS 1.3 one question is enough, and it allocates
// next to nothing.
func negotiated(info *tls.ClientHelloInfo) (uint16, keymanager.Auth) {
	ask := *info
	ask.ServerName, ask.SignatureSchemes = "", nil

	version := [1]uint16{tls.VersionTLS13}
	ask.SupportedVersions = version[:]
	if offersTLS13(info) && ask.SupportsCertificate(&tls.Certificate{}) == nil {
		return tls.VersionTLS13, keymanager.AuthRSA | keymanager.AuthECDSA
	}

	version[0] = tls.VersionTLS12
	var auth keymanager.Auth
	if ask.SupportsCertificate(&tls.Certificate{PrivateKey: rsaProbe{}}) == nil {
		auth |= keymanager.AuthRSA
	}
	// Ed25519 stands for ECDSA too: it needs the same suites, and no curve.
	scheme := [1]tls.SignatureScheme{tls.Ed25519}
	ask.SignatureSchemes = scheme[:]
	if ask.SupportsCertificate(&tls.Certificate{PrivateKey: ed25519Probe{}}) == nil {
		auth |= keymanager.AuthECDSA
	}
	return tls.VersionTLS12, auth
}

func offersTLS13(info *tls.ClientHelloInfo) bool {
	return slices.Contains(info.SupportedVersions, tls.VersionTLS13) &&
		slices.Contains(info.Extensions, extSupportedVersions)
}

// errProbe is returned by the keys of certificates that only exist to ask
// crypto/tls a question.
var errProbe = errors.New("a probe signs nothing")

type rsaProbe struct{}

func (rsaProbe) Public() crypto.PublicKey { return &rsa.PublicKey{N: new(big.Int), E: 65537} }

func (rsaProbe) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, errProbe }

type ed25519Probe struct{}

func (ed25519Probe) Public() crypto.PublicKey { return ed25519.PublicKey(nil) }

func (ed25519Probe) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, errProbe }
