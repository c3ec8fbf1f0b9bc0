// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestNegotiatedIsWhatCryptoTLSDoes compares the prediction with the handshake
// that follows, for each pair of a server's and a client's restrictions.
func TestNegotiatedIsWhatCryptoTLSDoes(t *testing.T) {
	const rsaSuite, ecdsaSuite = tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	restrictions := map[string]func(*tls.Config){
		"none":   func(*tls.Config) {},
		"max12":  func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"min13":  func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
		"rsa":    func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{rsaSuite} },
		"ecdsa":  func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{ecdsaSuite} },
		"x25519": func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} },
		"p256": func(c *tls.Config) {
			c.MaxVersion, c.CurvePreferences = tls.VersionTLS12, []tls.CurveID{tls.CurveP256}
		},
	}
	root := testca.NewRoot(t, testca.Spec{})
	certs := map[keymanager.Auth]tls.Certificate{}
	for auth, kt := range map[keymanager.Auth]testca.KeyType{keymanager.AuthRSA: testca.RSA2048, keymanager.AuthECDSA: testca.Ed25519} {
		c := root.Issue(t, testca.Spec{DNS: []string{"a.test"}, Key: kt})
		certs[auth] = tls.Certificate{Certificate: c.Chain(), PrivateKey: c.Key}
	}
	for serverName, restrictServer := range restrictions {
		for clientName, restrictClient := range restrictions {
			t.Run(serverName+"/"+clientName, func(t *testing.T) {
				for auth, cert := range certs {
					var asked bool
					var version uint16
					var got keymanager.Auth
					server := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(info *tls.ClientHelloInfo) (*tls.Certificate, error) {
						asked = true
						version, got = negotiated(info)
						return &cert, nil
					}}
					client := clientOf(root, "a.test")
					restrictServer(server)
					restrictClient(client)
					e := shake(t, client, server)
					if e.clientErr == nil && version != e.client.Version {
						t.Errorf("version = %#x, negotiated was %#x", version, e.client.Version)
					}
					if predicted := got&auth != 0; asked && predicted != (e.clientErr == nil) {
						t.Errorf("auth = %b, and with %b the handshake gave %v", got, auth, e.clientErr)
					}
				}
			})
		}
	}
}

// TestNegotiatedLegacyVersionIsNotTLS13 holds RFC 8446, 4.2.1: without the
// supported_versions extension the legacy version can't ask for TLS 1.3.
func TestNegotiatedLegacyVersionIsNotTLS13(t *testing.T) {
	info := aHello()
	info.Extensions = nil
	if version, _ := negotiated(info); version != tls.VersionTLS12 {
		t.Errorf("version = %#x, want TLS 1.2", version)
	}
}

func TestHelloIsPlainAndNormal(t *testing.T) {
	info := aHello()
	info.ServerName = "A.Example."
	h := helloOf(info, &handshake{listener: "l", alias: "a", id: "0-1", peer: "p"})
	if h.ServerName != "a.example" || h.Listener != "l" || h.Alias != "a" || h.ConnID != "0-1" || h.Peer != "p" {
		t.Errorf("hello = %+v", h)
	}
	if h.Role != keymanager.RoleServer || h.Version != tls.VersionTLS13 || h.Auth != keymanager.AuthRSA|keymanager.AuthECDSA {
		t.Errorf("hello = %+v", h)
	}
}

func aHello() *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		CipherSuites: []uint16{
			tls.TLS_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		},
		SupportedVersions: []uint16{tls.VersionTLS13, tls.VersionTLS12},
		Extensions:        []uint16{extSupportedVersions},
		SupportedCurves:   []tls.CurveID{tls.X25519},
		SignatureSchemes:  []tls.SignatureScheme{tls.PSSWithSHA256},
	}
}

func BenchmarkNegotiated(b *testing.B) {
	for _, v := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		b.Run(tls.VersionName(v)[4:], func(b *testing.B) {
			info := aHello()
			info.SupportedVersions = []uint16{v}
			b.ReportAllocs()
			for b.Loop() {
				if got, _ := negotiated(info); got != v {
					b.Fatalf("version = %#x", got)
				}
			}
		})
	}
}
