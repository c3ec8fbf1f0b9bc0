// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"encoding/asn1"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// attribute is an AttributeTypeAndValue of RFC 5280, 4.1.2.4, with its value as
// it is in the certificate.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// relativeSET is a RelativeDistinguishedName; encoding/asn1 knows a SET OF by
// the end of its name.
type relativeSET []attribute

// subjectText returns a DER encoded name as RFC 2253 text, last RDN first, the
// way Java's X500Principal reads and writes it: attributes that RFC 2253 names
// no keyword for, and values that are no plain string, are given as their DER in
// hexadecimal. The text is printable ASCII whatever the name holds: all other
// bytes are escaped, so that a subject can't end a header field. A name that
// can't be read, or an empty one, is "".
func subjectText(der []byte) string {
	var name []relativeSET
	if rest, err := asn1.Unmarshal(der, &name); err != nil || len(rest) > 0 {
		return ""
	}
	slices.Reverse(name)
	rdns := make([]string, len(name))
	for i, rdn := range name {
		parts := make([]string, len(rdn))
		for j, a := range rdn {
			parts[j] = a.text()
		}
		rdns[i] = strings.Join(parts, "+")
	}
	return strings.Join(rdns, ",")
}

func (a attribute) text() string {
	keyword := a.keyword()
	if value, ok := a.plain(); ok && keyword != "" {
		return keyword + "=" + escapeValue(value)
	}
	if keyword == "" {
		keyword = a.Type.String()
	}
	return keyword + "=#" + hex.EncodeToString(a.Value.FullBytes)
}

// keyword returns the attribute's keyword by RFC 2253, section 2.3, or "".
func (a attribute) keyword() string {
	switch a.Type.String() {
	case "2.5.4.3":
		return "CN"
	case "2.5.4.6":
		return "C"
	case "2.5.4.7":
		return "L"
	case "2.5.4.8":
		return "ST"
	case "2.5.4.9":
		return "STREET"
	case "2.5.4.10":
		return "O"
	case "2.5.4.11":
		return "OU"
	case "0.9.2342.19200300.100.1.1":
		return "UID"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	}
	return ""
}

// plain returns the value of a string type whose bytes are UTF-8.
func (a attribute) plain() (string, bool) {
	if a.Value.Class != asn1.ClassUniversal {
		return "", false
	}
	switch a.Value.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, asn1.TagNumericString:
		return string(a.Value.Bytes), utf8.Valid(a.Value.Bytes)
	}
	return "", false
}

// escapeValue escapes by RFC 2253, section 2.4, and beyond it the bytes that no
// header field should hold.
func escapeValue(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case needsHex(c), c == ' ' && beforeHex(s[i:]):
			b.Write([]byte{'\\', hexDigits[c>>4], hexDigits[c&15]})
		case strings.IndexByte(`,+"\<>;=#`, c) >= 0, c == ' ' && (i == 0 || i == len(s)-1):
			b.Write([]byte{'\\', c})
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func needsHex(c byte) bool { return c < ' ' || c > '~' }

// beforeHex reports whether s, which begins with a blank, goes on with an
// escaped byte: Java's X500Principal drops a plain blank there.
func beforeHex(s string) bool {
	rest := strings.TrimLeft(s, " ")
	return rest != "" && needsHex(rest[0])
}
