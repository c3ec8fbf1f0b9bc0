// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// clientProfile is what a kind of client offers, as far as a choice can depend
// on it. Each list is in the client's order, and leaves out what crypto/tls has
// no name for and no server here could take.
type clientProfile struct {
	name     string
	what     string // for people
	versions []uint16
	suites   []uint16
	groups   []tls.CurveID
	schemes  []tls.SignatureScheme
}

// Signature schemes that crypto/tls has no constants for. They never sign a
// handshake here, but a chain may be signed by them.
const (
	ecdsaSHA224  tls.SignatureScheme = 0x0303 // RFC 5246, 7.4.1.4.1
	rsaSHA224    tls.SignatureScheme = 0x0301
	ed448        tls.SignatureScheme = 0x0808 // RFC 8446, 4.2.3
	pssPSSSHA256 tls.SignatureScheme = 0x0809
	pssPSSSHA384 tls.SignatureScheme = 0x080a
	pssPSSSHA512 tls.SignatureScheme = 0x080b
)

// clientProfiles are the clients that explain knows, the default first.
//
// Sources: net/socket/ssl_client_socket_impl.cc of Chromium (its ML-DSA schemes
// aside, which nothing here signs by); the hellos of OpenSSL 3.0 and of
// crypto/tls of Go 1.26; that of OpenJDK 17.0.15; of OpenJDK 8 before TLS 1.3
// came to it (8u261; off in clients until 8u341)
// sun/security/ssl/SignatureAndHashAlgorithm.java and CipherSuite.java. The last
// two are openssl s_client -tls1_2 with -cipher aRSA, and with -sigalgs
// ECDSA+SHA1:RSA+SHA1.
func clientProfiles() []clientProfile {
	both, in12 := []uint16{tls.VersionTLS13, tls.VersionTLS12}, []uint16{tls.VersionTLS12}
	common := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
	return []clientProfile{
		{"modern", "Chrome and what is built on it", both,
			slices.Concat(suites13(), suitesGCM(), suitesCBC()), slices.Concat([]tls.CurveID{tls.X25519MLKEM768}, common),
			[]tls.SignatureScheme{
				tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256, tls.PKCS1WithSHA256,
				tls.ECDSAWithP384AndSHA384, tls.PSSWithSHA384, tls.PKCS1WithSHA384,
				tls.PSSWithSHA512, tls.PKCS1WithSHA512,
			}},
		{"openssl3", "OpenSSL 3 as it comes: curl, nginx, Python", both,
			slices.Concat(suites13(), suitesGCM(), suitesCBC()), []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP521, tls.CurveP384},
			schemesOpenSSL()},
		{"go", "programs in Go", both,
			slices.Concat(suitesGCM(), suitesCBC(), suites13()), slices.Concat([]tls.CurveID{tls.X25519MLKEM768}, common, []tls.CurveID{tls.CurveP521}),
			[]tls.SignatureScheme{
				tls.PSSWithSHA256, tls.ECDSAWithP256AndSHA256, tls.Ed25519, tls.PSSWithSHA384, tls.PSSWithSHA512,
				tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
			}},
		{"java17", "OpenJDK 17", both,
			slices.Concat(suites13(), suitesGCM(), suitesCBC()), slices.Concat(common, []tls.CurveID{tls.CurveP521}),
			slices.Concat(schemesECDSA(), []tls.SignatureScheme{
				tls.Ed25519, ed448, tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512, pssPSSSHA256, pssPSSSHA384, pssPSSSHA512,
			}, schemesRSA(), []tls.SignatureScheme{ecdsaSHA224, rsaSHA224, tls.ECDSAWithSHA1, tls.PKCS1WithSHA1})},
		{"java8", "OpenJDK 8 before 8u261: TLS 1.2, no PSS, SHA-512 first", in12,
			slices.Concat(suitesCBC(), suitesGCM()), []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521},
			[]tls.SignatureScheme{
				tls.ECDSAWithP521AndSHA512, tls.PKCS1WithSHA512, tls.ECDSAWithP384AndSHA384, tls.PKCS1WithSHA384,
				tls.ECDSAWithP256AndSHA256, tls.PKCS1WithSHA256, ecdsaSHA224, rsaSHA224, tls.ECDSAWithSHA1, tls.PKCS1WithSHA1,
			}},
		{"rsa-only", "TLS 1.2, suites for RSA certificates only, though it names ECDSA schemes", in12,
			[]uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA},
			common, schemesOpenSSL()},
		{"tls12-sha1", "TLS 1.2 with SHA-1 signatures only, which nothing serves", in12,
			slices.Concat(suitesGCM(), suitesCBC()), common, []tls.SignatureScheme{tls.ECDSAWithSHA1, tls.PKCS1WithSHA1}},
	}
}

func suites13() []uint16 {
	return []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}
}

func suitesGCM() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	}
}

func suitesCBC() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	}
}

func schemesOpenSSL() []tls.SignatureScheme {
	return slices.Concat(schemesECDSA(), []tls.SignatureScheme{
		tls.Ed25519, ed448, pssPSSSHA256, pssPSSSHA384, pssPSSSHA512, tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512,
	}, schemesRSA(), []tls.SignatureScheme{ecdsaSHA224, rsaSHA224})
}

func schemesECDSA() []tls.SignatureScheme {
	return []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512}
}

func schemesRSA() []tls.SignatureScheme {
	return []tls.SignatureScheme{tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512}
}

// findClient returns the profile of that name, as it is where version is "",
// else with that version of TLS alone.
func findClient(name, version string) (clientProfile, error) {
	all := clientProfiles()
	i := slices.IndexFunc(all, func(p clientProfile) bool { return p.name == name })
	if i < 0 {
		return clientProfile{}, fmt.Errorf("--client %q is not known: use one of %s", name, strings.Join(clientNames(), ", "))
	}
	p := all[i]
	if version == "" {
		return p, nil
	}
	v, ok := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	if !ok {
		return p, fmt.Errorf("--tls %q is neither 1.2 nor 1.3", version)
	}
	if !slices.Contains(p.versions, v) {
		return p, fmt.Errorf("--tls %s: client %s does not speak it", version, p.name)
	}
	p.versions = []uint16{v}
	return p, nil
}

func clientNames() []string {
	var names []string
	for _, p := range clientProfiles() {
		names = append(names, p.name)
	}
	return names
}

// clientHelp lists the profiles for the help text.
func clientHelp() string {
	var b strings.Builder
	for _, p := range clientProfiles() {
		fmt.Fprintf(&b, "  %-12s%s\n", p.name, p.what)
	}
	return b.String()
}
