// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestSchemesAreThoseOfCryptoTLS signs by each scheme as crypto/tls asks for
// it, and verifies.
func TestSchemesAreThoseOfCryptoTLS(t *testing.T) {
	keys := map[algorithm]crypto.Signer{
		rsaPKCS1: testca.NewKey(t, testca.RSA2048), ecdsaASN1: testca.NewKey(t, testca.P384), eddsa: testca.NewKey(t, testca.Ed25519),
	}
	keys[rsaPSS] = keys[rsaPKCS1]
	for _, s := range Schemes() {
		t.Run(s.String(), func(t *testing.T) {
			alg, hash := parts(s)
			var opts crypto.SignerOpts = hash
			if alg == rsaPSS {
				opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
			}
			key := keys[alg]
			got, err := SchemeOf(key.Public(), opts)
			if err != nil || got != s {
				t.Fatalf("SchemeOf = %v, %v", got, err)
			}
			msg := []byte("message")
			sig, err := crypto.SignMessage(key, rand.Reader, msg, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := Verify(key.Public(), s, msg, sig); err != nil {
				t.Error(err)
			}
			if err := Verify(key.Public(), s, append(msg, '.'), sig); err == nil {
				t.Error("a signature of another message verifies")
			}
		})
	}
	if err := Verify(keys[eddsa].Public(), tls.PSSWithSHA256, nil, nil); err == nil {
		t.Error("a scheme of another algorithm verifies")
	}
	if _, err := SchemeOf(keys[rsaPSS].Public(), crypto.SHA1); err == nil {
		t.Error("SHA-1 is signed")
	}
}
