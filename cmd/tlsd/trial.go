// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
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
	if err := keymanager.Verify(leaf.PublicKey, scheme, message, sig); err != nil {
		return scheme, fmt.Errorf("%w: key and certificate don't belong together", err)
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
	for _, s := range keymanager.Schemes() {
		if keymanager.SchemeFits(s, pub, tls.VersionTLS13) && (len(allowed) == 0 || slices.Contains(allowed, s)) {
			return s, nil
		}
	}
	if len(allowed) == 0 {
		return 0, fmt.Errorf("a %T like this can't sign in TLS 1.3", pub)
	}
	return 0, fmt.Errorf("none of the schemes %v is for TLS 1.3 and a %T", allowed, pub)
}
