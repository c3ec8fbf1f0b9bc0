// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func message13() []byte {
	m := append(bytes.Repeat([]byte{' '}, 64), "TLS 1.3, server CertificateVerify\x00"...)
	return append(m, make([]byte, 32)...)
}

func message12() []byte {
	return append(append(make([]byte, 64), 3, 0, 29, 32), make([]byte, 32)...)
}

// verifies checks sig with the standard library alone.
func verifies(pub crypto.PublicKey, h crypto.Hash, pss bool, msg, sig []byte) bool {
	digest := msg
	if h != 0 {
		w := h.New()
		w.Write(msg)
		digest = w.Sum(nil)
	}
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		if pss {
			return rsa.VerifyPSS(pub, h, digest, sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
		return rsa.VerifyPKCS1v15(pub, h, digest, sig) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(pub, digest, sig)
	case ed25519.PublicKey:
		return ed25519.Verify(pub, msg, sig)
	}
	return false
}

func TestFromSignerSignsBySchemesOfItsKeyOnly(t *testing.T) {
	type scheme struct {
		id   tls.SignatureScheme
		hash crypto.Hash
		pss  bool
		key  map[testca.KeyType]bool // that sign by it in TLS 1.2
		in13 testca.KeyType          // that signs by it in TLS 1.3; empty: none
	}
	rsas := map[testca.KeyType]bool{testca.RSA2048: true}
	ecs := map[testca.KeyType]bool{testca.P256: true, testca.P384: true, testca.P521: true}
	schemes := []scheme{
		{tls.PKCS1WithSHA256, crypto.SHA256, false, rsas, ""},
		{tls.PKCS1WithSHA384, crypto.SHA384, false, rsas, ""},
		{tls.PKCS1WithSHA512, crypto.SHA512, false, rsas, ""},
		{tls.PSSWithSHA256, crypto.SHA256, true, rsas, testca.RSA2048},
		{tls.PSSWithSHA384, crypto.SHA384, true, rsas, testca.RSA2048},
		{tls.PSSWithSHA512, crypto.SHA512, true, rsas, testca.RSA2048},
		{tls.ECDSAWithP256AndSHA256, crypto.SHA256, false, ecs, testca.P256},
		{tls.ECDSAWithP384AndSHA384, crypto.SHA384, false, ecs, testca.P384},
		{tls.ECDSAWithP521AndSHA512, crypto.SHA512, false, ecs, testca.P521},
		{tls.Ed25519, 0, false, map[testca.KeyType]bool{testca.Ed25519: true}, testca.Ed25519},
	}
	for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519} {
		key := keymanager.FromSigner(testca.NewKey(t, kt))
		for _, s := range schemes {
			for purpose, msg := range map[keymanager.Purpose][]byte{
				keymanager.ServerTLS13: message13(), keymanager.ServerTLS12: message12(),
			} {
				t.Run(string(kt)+"/"+s.id.String()+"/"+purpose.String()[:7], func(t *testing.T) {
					want := s.key[kt]
					if purpose == keymanager.ServerTLS13 {
						want = s.in13 == kt
					}
					sig, err := key.Sign(t.Context(), &keymanager.SignRequest{Scheme: s.id, Purpose: purpose, Message: msg})
					switch {
					case want && err != nil:
						t.Fatalf("Sign: %v", err)
					case want && !verifies(key.Public(), s.hash, s.pss, msg, sig):
						t.Error("signature does not verify")
					case !want && !errors.Is(err, keymanager.ErrNotHandshake):
						t.Errorf("Sign = %v, want an error that wraps ErrNotHandshake", err)
					}
				})
			}
		}
	}
}

// A crypto.Signer for ECDSA takes the first bytes of what it is given for a
// digest. With the scheme of another algorithm it would be given the message
// itself, whose first bytes are the client's random: any digest at all.
func TestForeignSchemeGetsNoSignatureOfADigest(t *testing.T) {
	signer := testca.NewKey(t, testca.P256)
	digest := sha256.Sum256([]byte("certificate signing request"))
	msg := message12()
	copy(msg, digest[:])
	sig, err := keymanager.FromSigner(signer).Sign(t.Context(), &keymanager.SignRequest{
		Scheme: tls.Ed25519, Purpose: keymanager.ServerTLS12, Message: msg,
	})
	if err == nil && ecdsa.VerifyASN1(signer.Public().(*ecdsa.PublicKey), digest[:], sig) {
		t.Fatal("the signature is one of a digest that the front chose")
	}
	if !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("Sign = %v, want an error that wraps ErrNotHandshake", err)
	}
}

func TestSignEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := keymanager.FromSigner(testca.NewKey(t, testca.P256)).Sign(ctx, &keymanager.SignRequest{
		Scheme: tls.ECDSAWithP256AndSHA256, Purpose: keymanager.ServerTLS13, Message: message13(),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Sign = %v, want context.Canceled", err)
	}
}

func TestKeyIDIsHashOfPublicKeyInfo(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	a := ca.Issue(t, testca.Spec{Name: "a"})
	renewed := ca.Issue(t, testca.Spec{Name: "b", Signer: a.Key})
	spki, err := x509.MarshalPKIXPublicKey(a.Key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if got := keymanager.KeyIDOf(a.Cert); got != sha256.Sum256(spki) {
		t.Errorf("key id %v is not the hash of the public key", got)
	}
	if keymanager.KeyIDOf(a.Cert) != keymanager.KeyIDOf(renewed.Cert) {
		t.Error("a certificate renewed over the same key has another key id")
	}
}
