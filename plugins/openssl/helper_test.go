// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// certificateVerify is what a server signs in TLS 1.3 (RFC 8446, 4.4.3).
func certificateVerify() []byte {
	m := append(bytes.Repeat([]byte{' '}, 64), "TLS 1.3, server CertificateVerify\x00"...)
	return append(m, bytes.Repeat([]byte{0xa5}, 32)...)
}

// schemesOf returns what a key like pub signs handshakes of TLS 1.3 by.
func schemesOf(pub crypto.PublicKey) (fit []tls.SignatureScheme) {
	for _, s := range keymanager.Schemes() {
		if keymanager.SchemeFits(s, pub, tls.VersionTLS13) {
			fit = append(fit, s)
		}
	}
	return fit
}

// keyTypes are those that TLS can use.
var keyTypes = []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519}

// mustLoad gives a key to libcrypto.
func mustLoad(t testing.TB, der []byte) *key {
	t.Helper()
	k, err := load(der)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*key)
}

func pkcs8(t testing.TB, k crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func spki(t testing.TB, pub crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// mixedRSA returns the modulus of one key with the private parts of another, in
// PKCS#1 (RFC 8017, A.1.2).
func mixedRSA(t testing.TB, a, b *rsa.PrivateKey) []byte {
	t.Helper()
	der, err := asn1.Marshal(struct {
		Version               int
		N                     *big.Int
		E                     int
		D, P, Q, DP, DQ, QInv *big.Int
	}{0, a.N, a.E, b.D, b.Primes[0], b.Primes[1], b.Precomputed.Dp, b.Precomputed.Dq, b.Precomputed.Qinv})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// mixedEC returns the public point of one key with the private number of
// another, in SEC 1 (RFC 5915, 3).
func mixedEC(t testing.TB, a, b *ecdsa.PrivateKey) []byte {
	t.Helper()
	ours, err := x509.MarshalECPrivateKey(a)
	if err != nil {
		t.Fatal(err)
	}
	point, err := a.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(ours, point, other, 1)
}
