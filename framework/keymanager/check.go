// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
)

// ErrNotHandshake is returned when a message to be signed is not visibly a TLS
// handshake of the declared purpose.
var ErrNotHandshake = errors.New("not a TLS handshake")

// Purpose is the place in a TLS handshake that a signature is for.
type Purpose uint8

// Purposes. The zero Purpose is none and is refused.
const (
	ServerTLS13 Purpose = 1 + iota // CertificateVerify of the server, RFC 8446, 4.4.3
	ServerTLS12                    // ServerKeyExchange with ECDHE, RFC 8422, 5.4
	ClientTLS13                    // CertificateVerify of the client, RFC 8446, 4.4.3
	ClientTLS12                    // CertificateVerify of the client, RFC 5246, 7.4.8
)

func (p Purpose) String() string {
	switch p {
	case ServerTLS13:
		return "TLS 1.3 server"
	case ServerTLS12:
		return "TLS 1.2 server"
	case ClientTLS13:
		return "TLS 1.3 client"
	case ClientTLS12:
		return "TLS 1.2 client"
	}
	return "none"
}

func (p Purpose) version() uint16 {
	if p == ServerTLS13 || p == ClientTLS13 {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

const (
	randomLen        = 32
	maxClientTLS12   = 256 << 10 // bytes; a client's TLS 1.2 transcript, with both chains in it
	serverContext    = "TLS 1.3, server CertificateVerify\x00"
	clientContext    = "TLS 1.3, client CertificateVerify\x00"
	namedCurve       = 3 // ECCurveType, RFC 8422, 5.4
	uncompressed     = 4 // first byte of an uncompressed point, SEC 1, 2.3.3
	handshakeHeader  = 4 // type and 24-bit length
	signaturePadding = 64
)

// Types of handshake messages (RFC 5246, 7.4, and RFC 6066, 8).
const (
	clientHello = 1 + iota
	serverHello
	certificate        = 11
	serverKeyExchange  = 12
	certificateRequest = 13
	serverHelloDone    = 14
	clientKeyExchange  = 16
	certificateStatus  = 22
)

// Check returns nil if Message is visibly a TLS handshake message of the
// declared purpose and Scheme may sign such a message, else an error that wraps
// ErrNotHandshake.
//
// Who holds a signer that refuses what fails here can impersonate its owner in
// a handshake that is going on. In TLS 1.3 that is all: the message begins with
// a context of its own. In TLS 1.2 a server signs two randoms and its
// parameters without one, so that a signature over a structure made to hold
// such parameters in the right place can't be told from it; no bare digest, and
// nothing that isn't made for this, passes.
func (r *SignRequest) Check() error {
	ok := false
	switch r.Purpose {
	case ServerTLS13:
		ok = isTLS13(r.Message, serverContext)
	case ClientTLS13:
		ok = isTLS13(r.Message, clientContext)
	case ServerTLS12:
		ok = isServerKeyExchange(r.Message)
	case ClientTLS12:
		ok = isClientTranscript(r.Message)
	}
	if !ok || !signsHandshakes(r.Scheme, r.Purpose.version()) {
		return fmt.Errorf("sign for purpose %q with %v: %w", r.Purpose, r.Scheme, ErrNotHandshake)
	}
	return nil
}

// CheckKey is Check and also returns an error that wraps ErrNotHandshake where
// Scheme is none for a key like pub. It is what a signer calls: a crypto.Signer
// that is handed the options of another algorithm may sign bytes of the message
// as if they were a digest, which would make it sign any digest.
func (r *SignRequest) CheckKey(pub crypto.PublicKey) error {
	if err := r.Check(); err != nil {
		return err
	}
	if !SchemeFits(r.Scheme, pub, r.Purpose.version()) {
		return fmt.Errorf("sign for purpose %q with %v by a key of type %T: %w", r.Purpose, r.Scheme, pub, ErrNotHandshake)
	}
	return nil
}

// signsHandshakes says whether handshakes are signed by s: without SHA-1, and
// with RSA only by PSS in TLS 1.3 (RFC 8446, 4.2.3).
func signsHandshakes(s tls.SignatureScheme, version uint16) bool {
	alg, _ := parts(s)
	return alg != 0 && (alg != rsaPKCS1 || version < tls.VersionTLS13)
}

// isTLS13 checks for 64 spaces, the context string with its zero byte and a
// transcript hash of SHA-256 or SHA-384, the hashes of the TLS 1.3 suites.
func isTLS13(msg []byte, context string) bool {
	head := signaturePadding + len(context)
	if len(msg) != head+32 && len(msg) != head+48 {
		return false
	}
	return bytes.Count(msg[:signaturePadding], []byte{' '}) == signaturePadding &&
		string(msg[signaturePadding:head]) == context
}

// isServerKeyExchange checks for two randoms and ServerECDHParams with a curve
// that crypto/tls offers and a point of its length.
func isServerKeyExchange(msg []byte) bool {
	const head = 2*randomLen + 4
	if len(msg) < head || msg[2*randomLen] != namedCurve {
		return false
	}
	curve := tls.CurveID(msg[2*randomLen+1])<<8 | tls.CurveID(msg[2*randomLen+2])
	point := msg[head:]
	if int(msg[head-1]) != len(point) {
		return false
	}
	switch curve {
	case tls.X25519:
		return len(point) == 32
	case tls.CurveP256:
		return len(point) == 65 && point[0] == uncompressed
	case tls.CurveP384:
		return len(point) == 97 && point[0] == uncompressed
	case tls.CurveP521:
		return len(point) == 133 && point[0] == uncompressed
	}
	return false
}

// isClientTranscript checks for the whole handshake messages, in order, that a
// client has sent and received by the time it signs (RFC 5246, 7.3): up to its
// ClientKeyExchange, with ECDHE, and with or without a stapled OCSP response.
func isClientTranscript(msg []byte) bool {
	if len(msg) > maxClientTLS12 {
		return false
	}
	types := make([]byte, 0, 16)
	for len(msg) > 0 {
		if len(msg) < handshakeHeader || len(types) == cap(types) {
			return false
		}
		n := int(msg[1])<<16 | int(msg[2])<<8 | int(msg[3])
		if len(msg)-handshakeHeader < n {
			return false
		}
		types = append(types, msg[0])
		msg = msg[handshakeHeader+n:]
	}
	head := []byte{clientHello, serverHello, certificate}
	tail := []byte{serverKeyExchange, certificateRequest, serverHelloDone, certificate, clientKeyExchange}
	middle, ok := bytes.CutPrefix(types, head)
	middle, ok2 := bytes.CutSuffix(middle, tail)
	return ok && ok2 && (len(middle) == 0 || len(middle) == 1 && middle[0] == certificateStatus)
}
