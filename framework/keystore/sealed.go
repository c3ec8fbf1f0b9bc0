// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/sha256"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// sealed is a private key as it lies in its store. It is immutable.
type sealed interface {
	// unseal returns the key in DER (PKCS#8, PKCS#1 or SEC 1), which is the
	// caller's to wipe, or errPassword.
	unseal(ctx context.Context, pw password) ([]byte, error)
	// encrypted reports whether unseal needs a password.
	encrypted() bool
}

// plainKey lies open in its store.
type plainKey struct{ der []byte }

func (k plainKey) encrypted() bool { return false }

func (k plainKey) unseal(context.Context, password) ([]byte, error) { return slices.Clone(k.der), nil }

// encryptedKey is an EncryptedPrivateKeyInfo (RFC 5208, 6): PKCS#12's shrouded
// bag, encrypted PKCS#8 and JCEKS.
type encryptedKey struct {
	scheme     *scheme
	ciphertext []byte
	digest     [sha256.Size]byte // of all of it, parameters too; zero in a keyInSafe
}

func readEncryptedKey(s cryptobyte.String, work *budget) (sealed, error) {
	var seq, ciphertext cryptobyte.String
	if !s.ReadASN1(&seq, asn1.SEQUENCE) {
		return nil, &DamagedError{Where: "encrypted key"}
	}
	whole := sha256.Sum256(seq)
	rest := seq
	oid, _, err := readAlgorithm(&rest)
	if err != nil {
		return nil, err
	}
	if oid == oidJKS {
		return readJKSKey(rest)
	}
	sch, err := readScheme(&seq, work)
	if err != nil {
		return nil, err
	}
	if !seq.ReadASN1(&ciphertext, asn1.OCTET_STRING) {
		return nil, &DamagedError{Where: "encrypted key"}
	}
	return encryptedKey{scheme: sch, ciphertext: slices.Clone(ciphertext), digest: whole}, nil
}

func (k encryptedKey) encrypted() bool { return true }

func (k encryptedKey) unseal(ctx context.Context, pw password) ([]byte, error) {
	der, err := k.scheme.open(ctx, pw, k.ciphertext)
	if err != nil {
		return nil, err
	}
	if !isWhole(der) {
		clear(der)
		return nil, errPassword
	}
	return der, nil
}

// keyInSafe is a key that lies open within an encrypted safe. It is looked up
// there anew each time, so that it is no more open here than in its file.
type keyInSafe struct {
	safe       *scheme
	ciphertext []byte
	index      int // among the plain keys of the safe
}

func (k keyInSafe) encrypted() bool { return true }

func (k keyInSafe) unseal(ctx context.Context, pw password) ([]byte, error) {
	plain, err := encryptedKey{scheme: k.safe, ciphertext: k.ciphertext}.unseal(ctx, pw)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	der, _, err := toDER(plain)
	if err != nil {
		return nil, err
	}
	var key []byte
	n := 0
	err = walkBags(der, func(oid string, value, _ cryptobyte.String) error {
		if oid == oidKeyBag {
			if n == k.index {
				key = slices.Clone(value)
			}
			n++
		}
		return nil
	})
	return key, err
}
