// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	encodingasn1 "encoding/asn1"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/dn"
)

// certificate is one certificate of a store. One that Go does not parse may
// still be a link of a chain: clients may be less strict.
type certificate struct {
	der             []byte
	parsed          *x509.Certificate // nil where err is set
	err             error
	subject, issuer []byte // DER of the names; nil where not even they can be read

	subjectName, issuerName string // the same, as they compare whatever way they are encoded

	name       string // PKCS#12 attributes
	localKeyID []byte
	trusted    bool
	distrust   error // why it is no anchor though it lies in a trust store
}

func newCertificate(der []byte) *certificate {
	c := &certificate{der: der}
	defer func() { c.subjectName, c.issuerName = dn.Canonical(c.subject), dn.Canonical(c.issuer) }()
	if c.parsed, c.err = x509.ParseCertificate(der); c.err == nil {
		c.subject, c.issuer = c.parsed.RawSubject, c.parsed.RawIssuer
		if k, ok := c.parsed.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() > maxRSA {
			c.parsed, c.err = nil, rsaSize(k.N)
		}
		return c
	}
	var serial []byte
	c.subject, c.issuer, serial = readNames(der)
	if len(serial) > 0 && serial[0]&0x80 != 0 {
		c.err = ErrSerial
	} else {
		c.err = &DamagedError{Where: "certificate", Err: c.err}
	}
	return c
}

// readNames reads subject, issuer and serial number and nothing else (RFC 5280,
// 4.1).
func readNames(der []byte) (subject, issuer, serial []byte) {
	s := cryptobyte.String(der)
	var cert, tbs, sub, iss, num cryptobyte.String
	version := asn1.Tag(0).Constructed().ContextSpecific()
	if !s.ReadASN1(&cert, asn1.SEQUENCE) || !cert.ReadASN1(&tbs, asn1.SEQUENCE) ||
		!tbs.SkipOptionalASN1(version) || !tbs.ReadASN1(&num, asn1.INTEGER) || !tbs.SkipASN1(asn1.SEQUENCE) ||
		!tbs.ReadASN1Element(&iss, asn1.SEQUENCE) || !tbs.SkipASN1(asn1.SEQUENCE) ||
		!tbs.ReadASN1Element(&sub, asn1.SEQUENCE) {
		return nil, nil, nil
	}
	return sub, iss, num
}

// selfIssued reports whether a chain ends with c.
func (c *certificate) selfIssued() bool { return bytes.Equal(c.subject, c.issuer) }

// authority reports whether c says that it issues certificates.
func (c *certificate) authority() bool {
	return c.parsed != nil && c.parsed.BasicConstraintsValid && c.parsed.IsCA
}

// title names c in messages.
func (c *certificate) title() string {
	if c.parsed != nil {
		return c.parsed.Subject.String()
	}
	var name pkix.RDNSequence
	if rest, err := encodingasn1.Unmarshal(c.subject, &name); err != nil || len(rest) > 0 {
		return "unreadable"
	}
	return name.String()
}

const (
	maxChain    = 32 // certificates; peers take ten or so
	maxVerified = 8  // issuers of one name and key identifier whose signature is tried
)

// buildChain returns leaf and its issuers found in pool, leaf first, up to a
// self-issued certificate or the last that is there. The notes are for people.
func buildChain(leaf *certificate, pool []*certificate) (chain []*certificate, notes []string) {
	chain = []*certificate{leaf}
	top := leaf
	for !top.selfIssued() && len(chain) < maxChain {
		next := issuerOf(top, chain, pool)
		if next == nil {
			break
		}
		chain = append(chain, next)
		top = next
	}
	if len(chain) == 1 && !top.selfIssued() && top.parsed != nil {
		notes = append(notes, fmt.Sprintf("the issuer %q is not in the keystore: clients that do not trust it itself will fail", top.parsed.Issuer))
	}
	return chain, notes
}

// issuerOf returns the issuer of c in pool, if it is there and not yet in
// chain. Names are to be the same byte by byte, as most peers compare them, and where
// none is, as X.500 compares them (and Java does).
func issuerOf(c *certificate, chain, pool []*certificate) *certificate {
	found := issuerNamed(c, chain, pool, func(p *certificate) bool { return bytes.Equal(p.subject, c.issuer) })
	if found == nil {
		found = issuerNamed(c, chain, pool, func(p *certificate) bool { return p.subjectName == c.issuerName })
	}
	return found
}

// issuerNamed is issuerOf for one way of comparing: of those with the right name the one whose key identifier is the one
// that c names, never one with another; of several the one whose key verifies, which
// is tried of the first few.
func issuerNamed(c *certificate, chain, pool []*certificate, named func(*certificate) bool) *certificate {
	var best []*certificate
	exact := false
	for _, p := range pool {
		if len(p.subject) == 0 || !named(p) || contains(chain, p) {
			continue
		}
		same, differs := compareKeyIDs(c, p)
		if differs || exact && !same {
			continue
		}
		if same && !exact {
			exact, best = true, nil
		}
		best = append(best, p)
	}
	if len(best) > 1 && c.parsed != nil {
		for _, p := range best[:min(len(best), maxVerified)] {
			if p.parsed != nil && c.parsed.CheckSignatureFrom(p.parsed) == nil {
				return p
			}
		}
	}
	if len(best) == 0 {
		return nil
	}
	return best[0]
}

// compareKeyIDs compares c's authority key identifier with p's own.
func compareKeyIDs(c, p *certificate) (same, differs bool) {
	if c.parsed == nil || p.parsed == nil || len(c.parsed.AuthorityKeyId) == 0 || len(p.parsed.SubjectKeyId) == 0 {
		return false, false
	}
	same = bytes.Equal(c.parsed.AuthorityKeyId, p.parsed.SubjectKeyId)
	return same, !same
}

// contains compares by content: stores repeat certificates.
func contains(chain []*certificate, c *certificate) bool {
	for _, have := range chain {
		if bytes.Equal(have.der, c.der) {
			return true
		}
	}
	return false
}

// root returns a root certificate that is in the store, or nil. What openssl makes
// self-signed says that it is one, even where it is a server's.
func (s *Store) root() *certificate {
	leaves := make(map[string]bool)
	for _, e := range s.Entries {
		if e.Kind == keymanager.KindKey && len(e.Chain) > 0 {
			leaves[string(e.Chain[0])] = true
		}
	}
	i := slices.IndexFunc(s.certs, func(c *certificate) bool { return c.authority() && c.selfIssued() && !leaves[string(c.der)] })
	if i < 0 {
		return nil
	}
	return s.certs[i]
}

// gap says that an intermediate certificate is missing, where that shows: a leaf
// is alone, and the store's root, if it has one, did not issue it. Of a leaf that
// names the place of its issuer's certificate framework/choose tells, with the
// place.
func (e *Entry) gap(root *certificate) string {
	if root == nil || e.lone == nil || e.lone.parsed == nil || len(e.lone.parsed.IssuingCertificateURL) > 0 {
		return ""
	}
	return fmt.Sprintf("the intermediate certificate %q is not in the keystore, whose root %q did not issue the leaf: add it",
		e.lone.parsed.Issuer, root.title())
}

// noteUnrelated warns about certificates that are in no chain and not trusted,
// by what is known of the entries now; but for roots, where a gap explains them.
func (s *Store) noteUnrelated() {
	s.Warnings = slices.Clone(s.opening)
	used := make(map[string]bool)
	for _, e := range s.Entries {
		for _, der := range e.Chain {
			used[string(der)] = true
		}
	}
	root := s.root()
	gap := slices.ContainsFunc(s.Entries, func(e *Entry) bool { return e.gap(root) != "" })
	const enough = 5
	n := 0
	for _, c := range s.certs {
		if used[string(c.der)] || gap && c.authority() && c.selfIssued() {
			continue
		}
		if n++; n <= enough && len(s.Entries) > 0 {
			s.warn("certificate %q belongs to no key and is not marked as trusted", c.title())
		}
	}
	switch {
	case n > 0 && len(s.Entries) == 0:
		s.warn("there is no entry: its %d certificates belong to no key and are not marked as trusted", n)
	case n > enough:
		s.warn("%d more certificates belong to no key and are not marked as trusted", n-enough)
	}
}
