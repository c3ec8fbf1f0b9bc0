// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// safe is one content of the authenticated safe (RFC 7292, 4.1). An encrypted
// one has a scheme.
type safe struct {
	scheme  *scheme
	content []byte
	bags    []bag
	keys    int // plain keys in it, counted while reading
}

// exportAnew is the advice where no tool is known to convert.
const exportAnew = "export it anew from where it came, with a password"

// readPKCS12 reads a PFX (RFC 7292, 4). All that can be known without a
// password is read, and its parameters are checked, before the MAC costs
// anything; what is encrypted follows once a password has fitted.
func (r *reader) readPKCS12(ctx context.Context, data []byte) error {
	content, macData, err := r.readPFX(data)
	if err != nil {
		return err
	}
	var m *mac
	if len(macData) > 0 {
		if m, err = readMAC(macData, r.work); err != nil {
			return err
		}
	}
	safes, err := r.readSafes(content)
	if err != nil {
		return err
	}
	for i := range safes {
		if safes[i].scheme == nil {
			if safes[i].bags, err = r.readBags(safes[i].content, nil); err != nil {
				return err
			}
		}
	}
	if err := r.work.sum(); err != nil {
		return err
	}
	if err := r.verify(ctx, m, content); err != nil {
		return err
	}
	if err := r.openSafes(ctx, safes); err != nil {
		return err
	}
	r.collect(safes)
	return nil
}

// readPFX returns the content of the authenticated safe and the MacData.
func (r *reader) readPFX(data []byte) (content, macData []byte, err error) {
	der, rest, err := toDER(data)
	if err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 {
		r.warn("%d bytes follow the keystore in its file; they are ignored", len(rest))
	}
	s := cryptobyte.String(der)
	var pfx, info cryptobyte.String
	if !s.ReadASN1(&pfx, asn1.SEQUENCE) {
		return nil, nil, &DamagedError{Where: "PFX"}
	}
	version, ok := readInt(&pfx)
	if !ok || !pfx.ReadASN1(&info, asn1.SEQUENCE) {
		return nil, nil, &DamagedError{Where: "PFX"}
	}
	if version != 3 {
		return nil, nil, &DamagedError{Where: "PFX version is not 3"}
	}
	oid, inner, err := readContentInfo(&info)
	if err != nil {
		return nil, nil, err
	}
	if oid != oidData {
		return nil, nil, &UnsupportedError{Algorithm: "public-key integrity (signed data) instead of a password", Hint: exportAnew}
	}
	if content, ok = readOctets(inner); !ok {
		return nil, nil, &DamagedError{Where: "authenticated safe"}
	}
	return content, pfx, nil
}

// readContentInfo reads the inside of a ContentInfo (RFC 2315, 7).
func readContentInfo(info *cryptobyte.String) (oid string, content cryptobyte.String, err error) {
	if !readOID(info, &oid) || !info.ReadASN1(&content, asn1.Tag(0).Constructed().ContextSpecific()) {
		return "", nil, &DamagedError{Where: "content of the authenticated safe"}
	}
	return oid, content, nil
}

func readOctets(s cryptobyte.String) ([]byte, bool) {
	var out cryptobyte.String
	ok := s.ReadASN1(&out, asn1.OCTET_STRING)
	return out, ok
}

// readSafes reads the AuthenticatedSafe: the safes, none decrypted.
func (r *reader) readSafes(content []byte) ([]safe, error) {
	der, _, err := toDER(content)
	if err != nil {
		return nil, err
	}
	s := cryptobyte.String(der)
	var list cryptobyte.String
	if !s.ReadASN1(&list, asn1.SEQUENCE) {
		return nil, &DamagedError{Where: "authenticated safe"}
	}
	var safes []safe
	for !list.Empty() {
		var info cryptobyte.String
		if !list.ReadASN1(&info, asn1.SEQUENCE) {
			return nil, &DamagedError{Where: "authenticated safe"}
		}
		if err := r.countBag(); err != nil {
			return nil, err
		}
		sf, err := r.readSafe(info)
		if err != nil {
			return nil, err
		}
		safes = append(safes, sf)
	}
	return safes, nil
}

func (r *reader) readSafe(info cryptobyte.String) (safe, error) {
	oid, inner, err := readContentInfo(&info)
	if err != nil {
		return safe{}, err
	}
	switch oid {
	case oidData:
		content, ok := readOctets(inner)
		if !ok {
			return safe{}, &DamagedError{Where: "content of the authenticated safe"}
		}
		return safe{content: content}, nil
	case oidEncryptedData:
		return r.readEncryptedSafe(inner)
	case oidEnvelopedData:
		return safe{}, &UnsupportedError{Algorithm: "public-key privacy (enveloped data) instead of a password", Hint: exportAnew}
	}
	return safe{}, &UnsupportedError{Algorithm: "content type " + oid}
}

// readEncryptedSafe reads an EncryptedData (RFC 2315, 13).
func (r *reader) readEncryptedSafe(s cryptobyte.String) (safe, error) {
	damaged := &DamagedError{Where: "encrypted content of the authenticated safe"}
	var seq, info cryptobyte.String
	var inner string
	if !s.ReadASN1(&seq, asn1.SEQUENCE) {
		return safe{}, damaged
	}
	if _, ok := readInt(&seq); !ok || !seq.ReadASN1(&info, asn1.SEQUENCE) || !readOID(&info, &inner) {
		return safe{}, damaged
	}
	sch, err := readScheme(&info, r.work)
	if err != nil {
		return safe{}, err
	}
	ciphertext, ok := readImplicitOctets(&info)
	if !ok {
		return safe{}, damaged
	}
	return safe{scheme: sch, content: ciphertext}, nil
}

// readImplicitOctets reads [0] IMPLICIT OCTET STRING, whole or, from BER, in
// pieces.
func readImplicitOctets(s *cryptobyte.String) ([]byte, bool) {
	var out cryptobyte.String
	tag := asn1.Tag(0).ContextSpecific()
	if s.PeekASN1Tag(tag) {
		ok := s.ReadASN1(&out, tag)
		return out, ok
	}
	ok := s.ReadASN1(&out, tag.Constructed())
	return joinPieces(out), ok
}

// verify finds which reading of the password the store was written under and
// puts it first.
func (r *reader) verify(ctx context.Context, m *mac, content []byte) error {
	switch {
	case m == nil && len(r.pw) > 0:
		r.warn("the keystore has no MAC: its integrity is not checked, nobody would notice a change of it")
		return nil
	case m == nil:
		return nil
	case len(r.pw) == 0:
		r.warn("no password was given: whether the keystore has been changed is not checked")
		return nil
	}
	for i, pw := range r.pw {
		err := m.verify(ctx, pw, content)
		if err == nil {
			r.pw[0], r.pw[i] = r.pw[i], r.pw[0]
			return nil
		}
		if !errors.Is(err, errPassword) {
			return err
		}
	}
	return &PasswordError{}
}

// openSafes decrypts the encrypted safes and reads their bags. What is not
// kept of the plaintext is wiped.
func (r *reader) openSafes(ctx context.Context, safes []safe) error {
	var all []password // the store's readings and, for safes under the keys' password, theirs
	for i := range safes {
		sf := &safes[i]
		if sf.scheme == nil {
			continue
		}
		if all == nil {
			keys, err := r.src.KeyPassword("")
			if err != nil {
				return err
			}
			all = appendNew(slices.Clone(r.pw), readings(keys))
			wipeBytes(keys)
			defer wipe(all)
		}
		der, err := openDER(ctx, all, sf.scheme, sf.content)
		if err != nil {
			return err
		}
		sf.bags, err = r.readBags(der, sf)
		clear(der)
		if err != nil {
			return err
		}
	}
	return r.work.sum()
}

// openDER decrypts ciphertext by the first of the passwords under which one
// whole ASN.1 value comes out.
func openDER(ctx context.Context, pws []password, s *scheme, ciphertext []byte) ([]byte, error) {
	if len(pws) == 0 {
		return nil, &PasswordError{Missing: true}
	}
	for _, pw := range pws {
		plain, err := s.open(ctx, pw, ciphertext)
		if err == nil {
			if isWhole(plain) {
				return plain, nil
			}
			clear(plain)
			continue
		}
		if !errors.Is(err, errPassword) {
			return nil, err
		}
	}
	return nil, &PasswordError{}
}

// isWhole reports whether b is one ASN.1 sequence and nothing more, which what
// a wrong password decrypts to is not.
func isWhole(b []byte) bool {
	if len(b) == 0 || b[0] != asn1TagSequence {
		return false
	}
	rest, _, err := scan(b, 0)
	return err == nil && len(rest) == 0
}
