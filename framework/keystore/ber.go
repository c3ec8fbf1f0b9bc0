// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	encasn1 "encoding/asn1"
	"fmt"
	"math"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// maxDepth bounds the nesting of ASN.1 values within one layer.
const maxDepth = 32

const (
	constructed       = 0x20
	highTag           = 0x1f
	octetString       = 0x04
	joinedOctetString = octetString | constructed
)

// toDER returns the first value of b in the distinguished encoding, and what
// follows it. NSS, BouncyCastle and others write PKCS#12 in BER (X.690, 8.1):
// indefinite or padded lengths, octet strings in pieces. A value that is DER
// already, as most are, is returned as a part of b and not copied, so that key
// material does not multiply.
func toDER(b []byte) (der, rest []byte, err error) {
	rest, strict, err := scan(b, 0)
	if err != nil {
		return nil, nil, err
	}
	if strict {
		return b[:len(b)-len(rest)], rest, nil
	}
	der, rest = appendDER(nil, b)
	return der, rest, nil
}

// header splits b into tag, length and the rest. length is -1 if indefinite;
// minimal is whether it has the shortest form.
func header(b []byte) (tag byte, length int, rest []byte, minimal bool, err error) {
	if len(b) < 2 {
		return 0, 0, nil, false, &DamagedError{Where: "the file breaks off"}
	}
	tag = b[0]
	if tag&highTag == highTag {
		return 0, 0, nil, false, &DamagedError{Where: "ASN.1 tag out of place"}
	}
	n, b := int(b[1]), b[2:]
	switch {
	case n < 0x80:
		length, minimal = n, true
	case n == 0x80:
		if tag&constructed == 0 {
			return 0, 0, nil, false, &DamagedError{Where: "ASN.1 primitive value of indefinite length"}
		}
		return tag, -1, b, false, nil
	case n-0x80 > len(b):
		return 0, 0, nil, false, &DamagedError{Where: "the file breaks off"}
	default:
		size := b[:n-0x80]
		b = b[n-0x80:]
		for _, c := range size {
			if length > math.MaxInt32>>8 {
				return 0, 0, nil, false, &DamagedError{Where: "the file breaks off, or a length in it is wrong"}
			}
			length = length<<8 | int(c)
		}
		minimal = size[0] != 0 && length >= 0x80
	}
	if length > len(b) {
		return 0, 0, nil, false, &DamagedError{Where: "the file breaks off, or a length in it is wrong"}
	}
	return tag, length, b, minimal, nil
}

// scan checks the first value of b and returns what follows. strict is whether
// it is DER as far as lengths and strings go.
func scan(b []byte, depth int) (rest []byte, strict bool, err error) {
	if depth > maxDepth {
		return nil, false, &LimitError{What: "depth of nesting", Value: int64(depth), Max: maxDepth}
	}
	tag, length, b, strict, err := header(b)
	if err != nil {
		return nil, false, err
	}
	if tag&constructed == 0 {
		return b[length:], strict, nil
	}
	strict = strict && tag != joinedOctetString
	content, rest := b, []byte(nil)
	if length >= 0 {
		content, rest = b[:length], b[length:]
	}
	for length >= 0 && len(content) > 0 || length < 0 && !endOfContents(content) {
		if tag == joinedOctetString && len(content) > 0 && content[0]&^constructed != octetString {
			return nil, false, &DamagedError{Where: "ASN.1 octet string of other pieces"}
		}
		var inner bool
		if content, inner, err = scan(content, depth+1); err != nil {
			return nil, false, err
		}
		strict = strict && inner
	}
	if length < 0 {
		rest = content[2:]
	}
	return rest, strict, nil
}

func endOfContents(b []byte) bool { return len(b) >= 2 && b[0] == 0 && b[1] == 0 }

// appendDER appends the first value of b to dst in DER. b has passed scan.
func appendDER(dst, b []byte) (out, rest []byte) {
	tag, length, b, _, err := header(b)
	if err != nil {
		panic("keystore: appendDER of what scan refuses") // unreachable: callers scan first
	}
	if tag&constructed == 0 {
		return appendValue(dst, tag, b[:length]), b[length:]
	}
	content, rest := b, []byte(nil)
	if length >= 0 {
		content, rest = b[:length], b[length:]
	}
	var inner []byte
	for length >= 0 && len(content) > 0 || length < 0 && !endOfContents(content) {
		inner, content = appendDER(inner, content)
	}
	if length < 0 {
		rest = content[2:]
	}
	if tag == joinedOctetString {
		return appendValue(dst, octetString, joinPieces(inner)), rest
	}
	return appendValue(dst, tag, inner), rest
}

// joinPieces returns the contents of a sequence of primitive octet strings.
func joinPieces(b []byte) []byte {
	var out []byte
	s := cryptobyte.String(b)
	for !s.Empty() {
		var piece cryptobyte.String
		if !s.ReadASN1(&piece, asn1.OCTET_STRING) {
			return out
		}
		out = append(out, piece...)
	}
	return out
}

func appendValue(dst []byte, tag byte, content []byte) []byte {
	dst = append(dst, tag)
	n := len(content)
	switch {
	case n < 0x80:
		dst = append(dst, byte(n))
	case n < 1<<8:
		dst = append(dst, 0x81, byte(n))
	case n < 1<<16:
		dst = append(dst, 0x82, byte(n>>8), byte(n))
	case n < 1<<24:
		dst = append(dst, 0x83, byte(n>>16), byte(n>>8), byte(n))
	default:
		dst = append(dst, 0x84, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(dst, content...)
}

// readInt reads an INTEGER, padded ones too, which some writers emit. What does
// not fit becomes math.MaxInt64 or math.MinInt64: too much for every limit.
func readInt(s *cryptobyte.String) (n int64, ok bool) {
	var b cryptobyte.String
	if !s.ReadASN1(&b, asn1.INTEGER) || len(b) == 0 {
		return 0, false
	}
	negative := b[0]&0x80 != 0
	for len(b) > 8 && (b[0] == 0 && !negative || b[0] == 0xff && negative) {
		b = b[1:]
	}
	if len(b) > 8 || (b[0]&0x80 != 0) != negative {
		if negative {
			return math.MinInt64, true
		}
		return math.MaxInt64, true
	}
	if negative {
		n = -1
	}
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n, true
}

// readOID reads an OBJECT IDENTIFIER into dotted form. One with an arc too long
// for that is somebody's own: it gets a form that equals none of ours.
func readOID(s *cryptobyte.String, out *string) bool {
	rest := *s
	var oid encasn1.ObjectIdentifier
	if s.ReadASN1ObjectIdentifier(&oid) {
		*out = oid.String()
		return true
	}
	*s = rest
	var raw cryptobyte.String
	if !s.ReadASN1(&raw, asn1.OBJECT_IDENTIFIER) || len(raw) > 64 {
		return false
	}
	*out = fmt.Sprintf("oid:%x", []byte(raw))
	return true
}
