// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestSignerRefusesDigest: a front that is taken over gets nothing signed but
// handshakes.
func TestSignerRefusesDigest(t *testing.T) {
	f, _ := fakeOf(t, testca.P256)
	k, _ := f.keys(t)
	cert, err := k.certificate(p256Hello())
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("a document"))
	if _, err := cert.PrivateKey.(crypto.Signer).Sign(rand.Reader, digest[:], crypto.SHA256); !errors.Is(err, errDigest) {
		t.Errorf("error = %v, want %v", err, errDigest)
	}
	_, err = cert.PrivateKey.(crypto.MessageSigner).SignMessage(rand.Reader, []byte("a document"), crypto.SHA256)
	if !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("error = %v, want %v", err, keymanager.ErrNotHandshake)
	}
	if _, ok := cert.PrivateKey.(crypto.Decrypter); ok {
		t.Error("the key decrypts, so that RSA key exchange is possible")
	}
}

func p256Hello() *tls.ClientHelloInfo {
	info := aHello()
	info.SignatureSchemes = []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}
	return info
}

// TestSchemesAreThoseOfCryptoTLS signs by each scheme as crypto/tls asks for
// it, and verifies.
func TestSchemesAreThoseOfCryptoTLS(t *testing.T) {
	keys := map[algorithm]crypto.Signer{
		rsaPKCS1: testca.NewKey(t, testca.RSA2048), ecdsaASN1: testca.NewKey(t, testca.P384), eddsa: testca.NewKey(t, testca.Ed25519),
	}
	keys[rsaPSS] = keys[rsaPKCS1]
	for _, s := range allSchemes() {
		t.Run(s.String(), func(t *testing.T) {
			alg, hash := parts(s)
			var opts crypto.SignerOpts = hash
			if alg == rsaPSS {
				opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
			}
			key := keys[alg]
			got, err := schemeOf(key.Public(), opts)
			if err != nil || got != s {
				t.Fatalf("schemeOf = %v, %v", got, err)
			}
			msg := []byte("message")
			sig, err := crypto.SignMessage(key, rand.Reader, msg, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(key.Public(), s, msg, sig); err != nil {
				t.Error(err)
			}
			if err := verify(key.Public(), s, append(msg, '.'), sig); err == nil {
				t.Error("a signature of another message verifies")
			}
		})
	}
	if _, err := schemeOf(keys[rsaPSS].Public(), crypto.SHA1); err == nil {
		t.Error("SHA-1 is signed")
	}
}
