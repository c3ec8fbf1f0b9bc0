// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/rand"
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
