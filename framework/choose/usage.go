// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"slices"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// checkUsage returns nil or why a leaf's extensions don't let it authenticate
// in role. A certificate without an extension is not limited by it. The JDK
// also wants keyAgreement of an EC server certificate, which none of the
// public CAs sets: here digitalSignature suffices.
func checkUsage(leaf *x509.Certificate, role keymanager.Role, m mode) error {
	if err := checkExtendedKeyUsage(leaf, role); err != nil {
		return err
	}
	if err := checkKeyUsage(leaf, role); err != nil {
		return err
	}
	_, isEC := leaf.PublicKey.(*ecdsa.PublicKey)
	if m == jdkPKIX && isEC && role == keymanager.RoleServer && hasKeyUsage(leaf) && leaf.KeyUsage&x509.KeyUsageKeyAgreement == 0 {
		return errors.New("key usage lacks keyAgreement, which the JDK wants of an EC key")
	}
	return nil
}

func checkExtendedKeyUsage(leaf *x509.Certificate, role keymanager.Role) error {
	if len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 {
		return nil
	}
	ok, want := []x509.ExtKeyUsage{
		x509.ExtKeyUsageAny, x509.ExtKeyUsageServerAuth,
		x509.ExtKeyUsageNetscapeServerGatedCrypto, x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	}, "extended key usage lacks serverAuth"
	if role == keymanager.RoleClient {
		ok, want = []x509.ExtKeyUsage{x509.ExtKeyUsageAny, x509.ExtKeyUsageClientAuth}, "extended key usage lacks clientAuth"
	}
	for _, u := range leaf.ExtKeyUsage {
		if slices.Contains(ok, u) {
			return nil
		}
	}
	return errors.New(want)
}

// checkKeyUsage asks nothing of an EdDSA certificate, as the JDK.
func checkKeyUsage(leaf *x509.Certificate, role keymanager.Role) error {
	if !hasKeyUsage(leaf) || leaf.PublicKeyAlgorithm == x509.Ed25519 {
		return nil
	}
	want := x509.KeyUsageDigitalSignature
	if _, isRSA := leaf.PublicKey.(*rsa.PublicKey); isRSA && role == keymanager.RoleServer {
		want |= x509.KeyUsageKeyEncipherment
	}
	if leaf.KeyUsage&want == 0 {
		return errors.New("key usage lacks digitalSignature")
	}
	return nil
}

// hasKeyUsage tells a key usage extension without a bit from none.
func hasKeyUsage(leaf *x509.Certificate) bool {
	keyUsage := asn1.ObjectIdentifier{2, 5, 29, 15}
	for _, ext := range leaf.Extensions {
		if ext.Id.Equal(keyUsage) {
			return true
		}
	}
	return false
}
