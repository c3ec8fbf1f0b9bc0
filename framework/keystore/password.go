// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// password is one reading of a password. Formats disagree about how characters
// become bytes, and writers about how formats do.
type password struct {
	utf16 []byte // UTF-16BE, no terminator: JKS; with one: PKCS#12's own derivation
	bytes []byte // UTF-8, by default: PBKDF2 and PEM
	bare  bool   // PKCS#12's own derivation without a terminator: some write an empty password so
}

// readings returns the readings of each spelling, the likely one first. The
// second is for what old or odd writers did: OpenSSL before 1.1 took each byte
// for a character, BouncyCastle fed Latin-1 to PBKDF2, and a password file may
// be Latin-1 itself. An empty password is terminated or nothing at all.
func readings(spellings [][]byte) []password {
	var out []password
	for _, s := range spellings {
		latin1 := fromLatin1(s)
		switch {
		case len(s) == 0:
			out = append(out, password{}, password{bare: true})
		case !utf8.Valid(s):
			out = append(out, password{utf16: toUTF16(latin1), bytes: []byte(string(latin1))},
				password{utf16: toUTF16(latin1), bytes: slices.Clone(s)})
		default:
			text := []rune(string(s))
			out = append(out, password{utf16: toUTF16(text), bytes: slices.Clone(s)})
			if len(text) < len(s) {
				out = append(out, password{utf16: toUTF16(latin1), bytes: toLatin1(text, s)})
			}
			clear(text)
		}
		clear(latin1)
	}
	return out
}

func fromLatin1(b []byte) []rune {
	out := make([]rune, len(b))
	for i, c := range b {
		out[i] = rune(c)
	}
	return out
}

// toLatin1 returns text in Latin-1, or s where that cannot hold it.
func toLatin1(text []rune, s []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return slices.Clone(s)
		}
		out = append(out, byte(r))
	}
	return out
}

func toUTF16(text []rune) []byte {
	out := make([]byte, 0, 2*len(text))
	for _, r := range text {
		if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
			out = binary.BigEndian.AppendUint16(out, uint16(r1))
			out = binary.BigEndian.AppendUint16(out, uint16(r2))
			continue
		}
		out = binary.BigEndian.AppendUint16(out, uint16(r))
	}
	return out
}

// terminated returns p as PKCS#12's own derivation takes it (RFC 7292, B.1).
func (p password) terminated() []byte {
	if p.bare {
		return nil
	}
	return append(slices.Clone(p.utf16), 0, 0)
}

func (p password) equal(q password) bool {
	return p.bare == q.bare && string(p.utf16) == string(q.utf16) && string(p.bytes) == string(q.bytes)
}

func (p password) clone() *password {
	return &password{utf16: slices.Clone(p.utf16), bytes: slices.Clone(p.bytes), bare: p.bare}
}

func (p password) wipe() {
	clear(p.utf16)
	clear(p.bytes)
}

// appendNew appends the readings of more that list has not.
func appendNew(list, more []password) []password {
	for _, p := range more {
		if slices.ContainsFunc(list, p.equal) {
			p.wipe()
			continue
		}
		list = append(list, p)
	}
	return list
}

func wipe(list []password) {
	for _, p := range list {
		p.wipe()
	}
}

func wipeBytes(list [][]byte) {
	for _, b := range list {
		clear(b)
	}
}
