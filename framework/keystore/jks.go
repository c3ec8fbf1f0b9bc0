// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/sha1"
	"crypto/subtle"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Tags of entries in a JKS or JCEKS file.
const (
	jksPrivateKey = 1
	jksTrusted    = 2
	jksSecret     = 3 // JCEKS only
)

// jksSalt is what Sun mixes into the digest at the end of the file.
const jksSalt = "Mighty Aphrodite"

// readJKS reads a JKS or JCEKS file: magic, version, count, the entries, and a
// SHA-1 over password and all that precedes. Lengths are believed only as far
// as the file goes.
func (r *reader) readJKS(data []byte) error {
	if len(data) < 12+sha1.Size {
		return &DamagedError{Where: "the file breaks off"}
	}
	s := cryptobyte.String(data[4 : len(data)-sha1.Size])
	var version, count uint32
	s.ReadUint32(&version)
	s.ReadUint32(&count)
	if version != 1 && version != 2 {
		return &DamagedError{Where: fmt.Sprintf("version %d of the format", version)}
	}
	if count > maxBags {
		return &LimitError{What: "entries", Value: int64(count), Max: maxBags}
	}
	for i := range count {
		if err := r.readJKSEntry(&s, version); err != nil {
			return fmt.Errorf("entry %d of %d, before byte %d: %w", i+1, count, len(data)-sha1.Size-len(s), err)
		}
	}
	if !s.Empty() {
		return &DamagedError{Where: fmt.Sprintf("%d bytes follow the last entry", len(s))}
	}
	if err := r.work.sum(); err != nil {
		return err
	}
	return r.verifyJKS(data[:len(data)-sha1.Size], data[len(data)-sha1.Size:])
}

// verifyJKS checks the digest. Without a password the file still opens, as in
// Java: its certificates are not encrypted.
func (r *reader) verifyJKS(content, want []byte) error {
	if len(r.pw) == 0 {
		r.warn("no password was given: whether the keystore has been changed is not checked")
		return nil
	}
	for i, pw := range r.pw {
		h := sha1.New()
		h.Write(pw.utf16)
		h.Write([]byte(jksSalt))
		h.Write(content)
		if subtle.ConstantTimeCompare(h.Sum(nil), want) == 1 {
			r.pw[0], r.pw[i] = r.pw[i], r.pw[0]
			return nil
		}
	}
	return &PasswordError{}
}

func (r *reader) readJKSEntry(s *cryptobyte.String, version uint32) error {
	var tag uint32
	var alias string
	if err := r.countBag(); err != nil {
		return err
	}
	if !s.ReadUint32(&tag) || !readJavaUTF(s, &alias) || !s.Skip(8) { // 8: date of creation
		return &DamagedError{Where: "the file breaks off"}
	}
	switch {
	case tag == jksPrivateKey:
		return r.readJKSPrivateKey(s, alias, version)
	case tag == jksTrusted:
		c, err := r.readJKSCertificate(s, version)
		if err != nil {
			return err
		}
		c.trusted = true
		r.addTrusted(alias, c)
		return nil
	case tag == jksSecret && r.Format == JCEKS:
		r.addSecret(alias)
		return skipJavaObject(s)
	}
	return &DamagedError{Where: fmt.Sprintf("entry of unknown kind %d", tag)}
}

// readJKSPrivateKey reads key and chain, which claims to belong to it, leaf
// first.
func (r *reader) readJKSPrivateKey(s *cryptobyte.String, alias string, version uint32) error {
	key, count := cryptobyte.String(nil), uint32(0)
	if !readBlock(s, &key) || !s.ReadUint32(&count) {
		return &DamagedError{Where: "the file breaks off"}
	}
	sealed, err := readEncryptedKey(key, r.work)
	e := r.addKey(alias, sealed, err)
	for range count {
		if err := r.countBag(); err != nil {
			return err
		}
		c, err := r.readJKSCertificate(s, version)
		if err != nil {
			return err
		}
		e.pool = append(e.pool, c)
	}
	if len(e.pool) > 0 {
		e.claim(e.pool[0])
	}
	return nil
}

func (r *reader) readJKSCertificate(s *cryptobyte.String, version uint32) (*certificate, error) {
	var der cryptobyte.String
	var typ string
	if version == 2 && !readJavaUTF(s, &typ) || !readBlock(s, &der) {
		return nil, &DamagedError{Where: "the file breaks off"}
	}
	c := newCertificate(der)
	r.certs = append(r.certs, c)
	return c, nil
}

// readBlock reads a 32-bit length and that many bytes.
func readBlock(s *cryptobyte.String, out *cryptobyte.String) bool {
	var n uint32
	return s.ReadUint32(&n) && uint64(n) <= uint64(len(*s)) && s.ReadBytes((*[]byte)(out), int(n))
}

// readJavaUTF reads a string in Java's modified UTF-8: UTF-16 whose units are
// encoded one by one, zero in two bytes. Other writers use UTF-8 as it is; the
// two are equal where both are valid.
func readJavaUTF(s *cryptobyte.String, out *string) bool {
	var b cryptobyte.String
	if !s.ReadUint16LengthPrefixed(&b) || len(b) > maxName {
		return false
	}
	if utf8.Valid(b) {
		*out = cleanName(string(b))
		return true
	}
	var units []uint16
	for i := 0; i < len(b); {
		unit, n := javaUnit(b[i:])
		units = append(units, unit)
		i += n
	}
	*out = cleanName(string(utf16.Decode(units)))
	return true
}

// javaUnit decodes one unit and its length. What is malformed becomes U+FFFD, a
// byte at a time: a damaged name hides no key.
func javaUnit(b []byte) (unit uint16, n int) {
	next := func(i int) bool { return i < len(b) && b[i]&0xc0 == 0x80 }
	switch c := b[0]; {
	case c < 0x80:
		return uint16(c), 1
	case c&0xe0 == 0xc0 && next(1):
		return uint16(c&0x1f)<<6 | uint16(b[1]&0x3f), 2
	case c&0xf0 == 0xe0 && next(1) && next(2):
		return uint16(c&0x0f)<<12 | uint16(b[1]&0x3f)<<6 | uint16(b[2]&0x3f), 3
	}
	return 0xfffd, 1
}

// jksKey is a key under Sun's key protector: a salt, the key xored with a chain
// of SHA-1, and a SHA-1 of password and key to check by. It knows no iterations.
type jksKey struct{ salt, ciphertext, check []byte }

func readJKSKey(s cryptobyte.String) (sealed, error) {
	var b cryptobyte.String
	if !s.ReadASN1(&b, asn1.OCTET_STRING) || len(b) <= 2*sha1.Size {
		return nil, &DamagedError{Where: "protected key is too short"}
	}
	return jksKey{
		salt:       b[:sha1.Size],
		ciphertext: b[sha1.Size : len(b)-sha1.Size],
		check:      b[len(b)-sha1.Size:],
	}, nil
}

func (k jksKey) encrypted() bool { return true }

func (k jksKey) unseal(_ context.Context, pw password) ([]byte, error) {
	der := slices.Clone(k.ciphertext)
	jksXOR(der, pw.utf16, k.salt)
	if subtle.ConstantTimeCompare(newJKSCheck(pw.utf16, der), k.check) != 1 {
		clear(der)
		return nil, errPassword
	}
	return der, nil
}

// jksXOR xors key with the chain of digests that begins with salt.
func jksXOR(key, pw, salt []byte) {
	h, d := sha1.New(), slices.Clone(salt)
	for len(key) > 0 {
		h.Reset()
		h.Write(pw)
		h.Write(d)
		d = h.Sum(d[:0])
		key = key[subtle.XORBytes(key, key, d):]
	}
	clear(d)
}

func newJKSCheck(pw, der []byte) []byte {
	h := sha1.New()
	h.Write(pw)
	h.Write(der)
	return h.Sum(nil)
}
