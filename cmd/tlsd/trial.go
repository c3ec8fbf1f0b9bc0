// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// trial has the key of an entry sign what a server signs in a TLS 1.3
// handshake, and verifies it with the certificate.
func trial(ctx context.Context, key keymanager.Key, leaf *x509.Certificate, schemes []tls.SignatureScheme) (tls.SignatureScheme, error) {
	scheme, err := trialScheme(leaf.PublicKey, schemes)
	if err != nil {
		return 0, err
	}
	message := certificateVerify()
	sig, err := key.Sign(ctx, &keymanager.SignRequest{
		Scheme: scheme, Purpose: keymanager.ServerTLS13, Message: message, Listener: "check",
	})
	if err != nil {
		return scheme, err
	}
	if !verifies(leaf.PublicKey, scheme, message, sig) {
		return scheme, errors.New("the signature does not verify: key and certificate don't belong together")
	}
	return scheme, nil
}

// certificateVerify returns what is signed in a handshake whose transcript hash
// is random (RFC 8446, 4.4.3).
func certificateVerify() []byte {
	hash := make([]byte, 32)
	rand.Read(hash)
	head := strings.Repeat(" ", 64) + "TLS 1.3, server CertificateVerify\x00"
	return append([]byte(head), hash...)
}

// trialScheme returns a scheme of TLS 1.3 for a key, of those that the entry
// allows.
func trialScheme(pub crypto.PublicKey, allowed []tls.SignatureScheme) (tls.SignatureScheme, error) {
	schemes := keySchemes(pub)
	if len(schemes) == 0 {
		return 0, fmt.Errorf("a %T can't sign in TLS 1.3", pub)
	}
	if len(allowed) == 0 {
		return schemes[0], nil
	}
	for _, s := range schemes {
		for _, a := range allowed {
			if s == a {
				return s, nil
			}
		}
	}
	return 0, fmt.Errorf("none of the schemes %v is for TLS 1.3 and a %T", allowed, pub)
}

func keySchemes(pub crypto.PublicKey) []tls.SignatureScheme {
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		return []tls.SignatureScheme{tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512}
	case ed25519.PublicKey:
		return []tls.SignatureScheme{tls.Ed25519}
	case *ecdsa.PublicKey:
		switch pub.Curve {
		case elliptic.P256():
			return []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}
		case elliptic.P384():
			return []tls.SignatureScheme{tls.ECDSAWithP384AndSHA384}
		case elliptic.P521():
			return []tls.SignatureScheme{tls.ECDSAWithP521AndSHA512}
		}
	}
	return nil
}

func verifies(pub crypto.PublicKey, scheme tls.SignatureScheme, message, sig []byte) bool {
	digest := func(h crypto.Hash) []byte {
		w := h.New()
		w.Write(message)
		return w.Sum(nil)
	}
	hash := schemeHash(scheme)
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		opts := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		return rsa.VerifyPSS(pub, hash, digest(hash), sig, opts) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(pub, digest(hash), sig)
	case ed25519.PublicKey:
		return ed25519.Verify(pub, message, sig)
	}
	return false
}

func schemeHash(s tls.SignatureScheme) crypto.Hash {
	switch s {
	case tls.PSSWithSHA384, tls.ECDSAWithP384AndSHA384:
		return crypto.SHA384
	case tls.PSSWithSHA512, tls.ECDSAWithP521AndSHA512:
		return crypto.SHA512
	}
	return crypto.SHA256
}
