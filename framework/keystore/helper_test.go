// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
)

// verifySignature checks a signature over a SHA-256 digest (Ed25519: over the
// bytes themselves).
func verifySignature(public crypto.PublicKey, digest, sig []byte) error {
	ok := false
	switch k := public.(type) {
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(k, crypto.SHA256, digest, sig) == nil
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(k, digest, sig)
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, digest, sig)
	default:
		return fmt.Errorf("public key of type %T", public)
	}
	if !ok {
		return errors.New("the signature does not verify with the leaf")
	}
	return nil
}
