// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/hmac"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// SetAlias returns a copy of a PKCS#12 store whose key has an alias (friendlyName:
// RFC 2985, 5.5.1), which go-pkcs12, the writer of our stores, has no way to
// give. store is as that writes it: a safe of certificates, one of a single key,
// and a MAC, which is made anew. The error is a *PasswordError where password is
// not the store's.
func SetAlias(ctx context.Context, store []byte, alias, password string) ([]byte, error) {
	pw := readings([][]byte{[]byte(password)})
	defer wipe(pw)
	content, m, err := readSealed(store)
	if err != nil {
		return nil, err
	}
	if m.verify(ctx, pw[0], content) != nil {
		return nil, &PasswordError{}
	}
	// From the PFX: its content, therein the second safe's, the one bag, and
	// that bag's attributes. At 0 are version, type or, in octets, what they hold.
	named, err := amend(store, friendlyName(alias), 1, 1, 0, 0, 1, 1, 0, 0, 0, 2)
	if err != nil {
		return nil, err
	}
	if content, m, err = readSealed(named); err != nil {
		return nil, err
	}
	return named, m.seal(ctx, pw[0], content)
}

// readSealed returns what the MAC of a store in DER is over, and the MAC. Both
// are parts of store.
func readSealed(store []byte) ([]byte, *mac, error) {
	r := &reader{Store: &Store{}, work: newBudget(Limits{})}
	content, macData, err := r.readPFX(store)
	if err != nil {
		return nil, nil, err
	}
	m, err := readMAC(macData, r.work)
	return content, m, err
}

// seal overwrites the digest of m with that of content.
func (m *mac) seal(ctx context.Context, pw password, content []byte) error {
	key, err := m.key(ctx, pw)
	if err != nil {
		return err
	}
	defer clear(key)
	h := hmac.New(m.hash, key)
	h.Write(content)
	h.Sum(m.digest[:0])
	return nil
}

// amend returns a copy of the ASN.1 value der with more appended to the content
// of the value at path: at each step the position, from 0, among the values
// inside the one before. Octets hold values too.
func amend(der, more []byte, path ...int) ([]byte, error) {
	s := cryptobyte.String(der)
	var inside cryptobyte.String
	var tag asn1.Tag
	damaged := &DamagedError{Where: "structure of the store"}
	if !s.ReadAnyASN1(&inside, &tag) {
		return nil, damaged
	}
	content := slices.Concat(inside, more)
	if len(path) > 0 {
		rest := inside
		var step cryptobyte.String
		for range path[0] + 1 {
			if !rest.ReadAnyASN1Element(&step, nil) {
				return nil, damaged
			}
		}
		before := inside[:len(inside)-len(rest)-len(step)]
		child, err := amend(step, more, path[1:]...)
		if err != nil {
			return nil, err
		}
		content = slices.Concat(before, child, rest)
	}
	var b cryptobyte.Builder
	b.AddASN1(tag, func(b *cryptobyte.Builder) { b.AddBytes(content) })
	return b.Bytes()
}

// friendlyName returns the attribute.
func friendlyName(alias string) []byte {
	const bmpString = asn1.Tag(30)
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier([]int{1, 2, 840, 113549, 1, 9, 20})
		b.AddASN1(asn1.SET, func(b *cryptobyte.Builder) {
			b.AddASN1(bmpString, func(b *cryptobyte.Builder) { b.AddBytes(toUTF16([]rune(alias))) })
		})
	})
	return b.BytesOrPanic() // nothing of it can fail
}
