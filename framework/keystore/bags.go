// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// bag is one SafeBag (RFC 7292, 4.2): a key, a secret or a certificate.
type bag struct {
	kind       string // keymanager.KindKey or KindSecret; empty: certificate
	name       string // friendlyName
	localKeyID []byte
	trusted    bool // has Java's trusted attribute

	key  sealed // of a key that is in order as far as can be seen
	err  error  // why a key is not
	cert []byte
}

// countBag refuses a file with too many parts.
func (r *reader) countBag() error {
	if r.bags++; r.bags > maxBags {
		return &LimitError{What: "entries and certificates", Value: int64(r.bags), Max: maxBags}
	}
	return nil
}

// readBags reads SafeContents. in is the encrypted safe that they come from, or
// nil.
func (r *reader) readBags(contents []byte, in *safe) ([]bag, error) {
	der, _, err := toDER(contents)
	if err != nil {
		return nil, err
	}
	var out []bag
	err = walkBags(der, func(oid string, value, attributes cryptobyte.String) error {
		if err := r.countBag(); err != nil {
			return err
		}
		b, ok, err := r.readBag(oid, value, in)
		if err != nil || !ok {
			return err
		}
		b.readAttributes(attributes)
		out = append(out, b)
		return nil
	})
	return out, err
}

// walkBags calls visit for each bag, those in nested SafeContents in their
// place.
func walkBags(der []byte, visit func(oid string, value, attributes cryptobyte.String) error) error {
	s := cryptobyte.String(der)
	var list cryptobyte.String
	if !s.ReadASN1(&list, asn1.SEQUENCE) {
		return &DamagedError{Where: "list of bags"}
	}
	for !list.Empty() {
		var b, value, attributes cryptobyte.String
		var oid string
		if !list.ReadASN1(&b, asn1.SEQUENCE) || !readOID(&b, &oid) ||
			!b.ReadASN1(&value, asn1.Tag(0).Constructed().ContextSpecific()) ||
			!b.ReadOptionalASN1(&attributes, nil, asn1.SET) {
			return &DamagedError{Where: "bag"}
		}
		if err := visit(oid, value, attributes); err != nil {
			return err
		}
		if oid != oidNestedBag {
			continue
		}
		// The nesting is bounded: toDER has been through it.
		if err := walkBags(value, visit); err != nil {
			return err
		}
	}
	return nil
}

// readBag reads the value of one bag; not ok is a bag of no interest.
func (r *reader) readBag(oid string, value cryptobyte.String, in *safe) (b bag, ok bool, err error) {
	switch oid {
	case oidKeyBag:
		key, err := r.plainKey(value, in)
		return bag{kind: keymanager.KindKey, key: key, err: err}, true, nil
	case oidShroudedBag:
		key, err := readEncryptedKey(value, r.work)
		return bag{kind: keymanager.KindKey, key: key, err: err}, true, nil
	case oidCertBag:
		der, ok := readCertBag(value)
		return bag{cert: der}, ok, nil
	case oidSecretBag:
		return bag{kind: keymanager.KindSecret}, true, nil
	case oidNestedBag, oidCRLBag:
		return bag{}, false, nil
	}
	r.warn("a bag of unknown type %s is ignored", oid)
	return bag{}, false, nil
}

// plainKey is an unencrypted key. Where the safe around it is encrypted the key
// stays there, and only its position is kept; to get at it takes as many iterations
// as the safe does, each time.
func (r *reader) plainKey(value []byte, in *safe) (sealed, error) {
	if in == nil {
		return plainKey{der: value}, nil
	}
	in.keys++
	return keyInSafe{safe: in.scheme, ciphertext: in.content, index: in.keys - 1}, r.work.one(in.scheme.iterations)
}

// readCertBag returns the certificate of a CertBag; SDSI ones are none.
func readCertBag(value cryptobyte.String) ([]byte, bool) {
	var seq, inner cryptobyte.String
	var oid string
	if !value.ReadASN1(&seq, asn1.SEQUENCE) || !readOID(&seq, &oid) || oid != oidX509 ||
		!seq.ReadASN1(&inner, asn1.Tag(0).Constructed().ContextSpecific()) {
		return nil, false
	}
	der, ok := readOctets(inner)
	return slices.Clone(der), ok
}

// readAttributes reads the attributes that concern us, and overlooks whatever
// else there is: writers put much there, not all of it well-formed.
func (b *bag) readAttributes(set cryptobyte.String) {
	for !set.Empty() {
		var attr, values cryptobyte.String
		var oid string
		if !set.ReadASN1(&attr, asn1.SEQUENCE) {
			return
		}
		if !readOID(&attr, &oid) || !attr.ReadASN1(&values, asn1.SET) {
			continue
		}
		switch oid {
		case oidFriendlyName:
			if name := readName(values); name != "" && b.name == "" {
				b.name = name
			}
		case oidLocalKeyID:
			if id, ok := readOctets(values); ok && b.localKeyID == nil {
				b.localKeyID = slices.Clone(id)
			}
		case oidTrusted:
			b.trusted = true
		}
	}
}

// readName reads a friendlyName: UTF-16BE by the standard, UTF-8 by some. One
// that is no text counts as none, as in Java.
func readName(values cryptobyte.String) string {
	var raw cryptobyte.String
	var tag asn1.Tag
	if !values.ReadAnyASN1(&raw, &tag) || len(raw) > maxName {
		return ""
	}
	const bmpString = asn1.Tag(30)
	switch tag {
	case asn1.UTF8String:
		return cleanName(string(raw))
	case bmpString:
		if len(raw)%2 != 0 {
			return ""
		}
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(raw[2*i:])
		}
		return cleanName(string(utf16.Decode(units)))
	}
	return ""
}

// cleanName drops terminators, which nobody can type, and makes the rest valid
// UTF-8.
func cleanName(name string) string {
	return strings.ToValidUTF8(strings.TrimRight(name, "\x00"), "\uFFFD")
}

// collect makes entries of the bags, in store order, and claims certificates.
func (r *reader) collect(safes []safe) {
	var keys []*Entry
	for _, sf := range safes {
		for _, b := range sf.bags {
			switch {
			case b.kind == "":
				r.addCertificate(b)
			case b.kind == keymanager.KindKey:
				e := r.addKey(b.name, b.key, b.err)
				e.localKeyID = b.localKeyID
				keys = append(keys, e)
			default:
				r.addSecret(b.name)
			}
		}
	}
	for _, e := range keys {
		e.pool = r.certs
		e.claim(claimed(e, r.certs, len(keys)))
	}
}

func (r *reader) addCertificate(b bag) {
	c := newCertificate(b.cert)
	c.name, c.localKeyID, c.trusted = b.name, b.localKeyID, b.trusted
	r.certs = append(r.certs, c)
	if b.trusted {
		r.addTrusted(b.name, c)
	}
}

// claimed returns the certificate that claims to be the key's: by localKeyId
// and, of several, by name too; then by name; then the only one that is not
// some authority's. It is nil where none does.
func claimed(e *Entry, certs []*certificate, keys int) *certificate {
	var byID, byName, only *certificate
	leaves := 0
	for _, c := range certs {
		sameName := e.Alias != "" && strings.EqualFold(c.name, e.Alias)
		if len(e.localKeyID) > 0 && bytes.Equal(c.localKeyID, e.localKeyID) && (byID == nil || sameName && !strings.EqualFold(byID.name, e.Alias)) {
			byID = c
		}
		if sameName && byName == nil && !c.trusted {
			byName = c
		}
		if !c.trusted && !c.authority() {
			only = c
			leaves++
		}
	}
	switch {
	case byID != nil:
		return byID
	case byName != nil:
		return byName
	case keys == 1 && len(certs) == 1:
		return certs[0]
	case keys == 1 && leaves == 1:
		return only
	}
	return nil
}
