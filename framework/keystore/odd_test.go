// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"crypto/x509"
	encodingasn1 "encoding/asn1"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// Bags as no tool at hand writes them, keys not encrypted.

func value0(content []byte) []byte {
	return tlv(asn1.Tag(0).Constructed().ContextSpecific(), content)
}

func tlv(tag asn1.Tag, content ...[]byte) []byte {
	var b cryptobyte.Builder
	b.AddASN1(tag, func(b *cryptobyte.Builder) { b.AddBytes(bytes.Join(content, nil)) })
	return b.BytesOrPanic()
}

func oidDER(t *testing.T, dotted string) []byte {
	t.Helper()
	var oid encodingasn1.ObjectIdentifier
	for part := range strings.SplitSeq(dotted, ".") {
		var n int
		if _, err := fmt.Sscan(part, &n); err != nil {
			t.Fatal(err)
		}
		oid = append(oid, n)
	}
	der, err := encodingasn1.Marshal(oid)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// odd makes bags for one test.
type odd struct{ t *testing.T }

func (o odd) bag(oid string, value []byte, attributes ...[]byte) []byte {
	b := [][]byte{oidDER(o.t, oid), value0(value)}
	if len(attributes) > 0 {
		b = append(b, tlv(asn1.SET, attributes...))
	}
	return tlv(asn1.SEQUENCE, b...)
}

func (o odd) key(c *testca.Cert, attributes ...[]byte) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(c.Key)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.bag(oidKeyBag, der, attributes...)
}

func (o odd) cert(der []byte, attributes ...[]byte) []byte {
	return o.bag(oidCertBag, tlv(asn1.SEQUENCE, oidDER(o.t, oidX509), value0(tlv(asn1.OCTET_STRING, der))), attributes...)
}

func (o odd) nested(bags ...[]byte) []byte {
	return o.bag(oidNestedBag, tlv(asn1.SEQUENCE, bags...))
}

func (o odd) id(id string) []byte {
	return tlv(asn1.SEQUENCE, oidDER(o.t, oidLocalKeyID), tlv(asn1.SET, tlv(asn1.OCTET_STRING, []byte(id))))
}

func (o odd) utf8Name(name string) []byte {
	return tlv(asn1.SEQUENCE, oidDER(o.t, oidFriendlyName), tlv(asn1.SET, tlv(asn1.UTF8String, []byte(name))))
}

func (o odd) trust() []byte {
	return tlv(asn1.SEQUENCE, oidDER(o.t, oidTrusted), tlv(asn1.SET, oidDER(o.t, "2.5.29.37.0")))
}

// store is a PFX without a MAC, with one safe that is not encrypted.
func (o odd) store(bags [][]byte) []byte {
	data := func(content []byte) []byte {
		return tlv(asn1.SEQUENCE, oidDER(o.t, oidData), value0(tlv(asn1.OCTET_STRING, content)))
	}
	return tlv(asn1.SEQUENCE, tlv(asn1.INTEGER, []byte{3}), data(tlv(asn1.SEQUENCE, data(tlv(asn1.SEQUENCE, bags...)))))
}

// TestOddBags: aliases, order and chains of stores as writers, or nobody yet,
// have come up with.
func TestOddBags(t *testing.T) {
	o := odd{t}
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	ca := root.Issue(t, testca.Spec{Name: "ca", IsCA: true})
	a, b := ca.Issue(t, testca.Spec{Name: "a"}), ca.Issue(t, testca.Spec{Name: "b"})
	renewed := ca.Issue(t, testca.Spec{Name: "a-renewed", Signer: a.Key})

	tests := []struct {
		name     string
		bags     [][]byte
		want     []string // alias, kind, verdict or chain
		warnings int
	}{
		{"certificates-last", [][]byte{o.key(a, friendlyName("x"), o.id("1")), o.cert(ca.DER), o.cert(a.DER, o.id("1"))},
			[]string{"x key a,ca"}, 0},
		{"certificates-first", [][]byte{o.cert(a.DER, o.id("1")), o.cert(root.DER), o.cert(ca.DER), o.key(a, o.id("1"), friendlyName("x"))},
			[]string{"x key a,ca,root"}, 0},
		{"nested", [][]byte{o.nested(o.nested(o.key(a, friendlyName("x"), o.id("1"))), o.cert(ca.DER)), o.nested(o.cert(a.DER, o.id("1"))), o.key(b, friendlyName("y"), o.id("2")), o.cert(b.DER, o.id("2"))},
			[]string{"x key a,ca", "y key b,ca"}, 0},
		{"crossed-ids", [][]byte{o.key(a, friendlyName("x"), o.id("2")), o.key(b, friendlyName("y"), o.id("1")), o.cert(a.DER, o.id("1")), o.cert(b.DER, o.id("2")), o.cert(ca.DER)},
			[]string{"x key a,ca", "y key b,ca"}, 0},
		{"no-ids-by-name", [][]byte{o.key(a, friendlyName("x")), o.key(b, friendlyName("y")), o.cert(b.DER, friendlyName("Y")), o.cert(a.DER, friendlyName("X"))},
			[]string{"x key a", "y key b"}, 0},
		{"no-attributes", [][]byte{o.cert(ca.DER), o.key(b), o.cert(a.DER), o.cert(b.DER), o.key(a)},
			[]string{"1 key b,ca", "2 key a,ca"}, 0},
		{"one-id-for-the-whole-chain", [][]byte{o.key(a, o.id("1")), o.cert(ca.DER, o.id("1")), o.cert(a.DER, o.id("1"))},
			[]string{"1 key a,ca"}, 0},
		{"renewed-under-the-same-key", [][]byte{o.key(a, o.id("2")), o.cert(a.DER, o.id("1")), o.cert(renewed.DER, o.id("2"))},
			[]string{"1 key a-renewed"}, 1},
		{"equal-names", [][]byte{o.key(a, friendlyName("x")), o.cert(a.DER), o.key(b, friendlyName("x")), o.cert(b.DER)},
			[]string{"x key a", "x-2 key b"}, 1},
		{"equal-names-and-their-suffix", [][]byte{o.key(a, friendlyName("x")), o.cert(a.DER), o.key(b, friendlyName("x-2")), o.cert(b.DER), o.cert(root.DER, friendlyName("x"), o.trust())},
			[]string{"x key a", "x-2 key b", "x-3 trusted root"}, 1},
		{"names-equal-but-for-case", [][]byte{o.key(a, friendlyName("Straße")), o.cert(a.DER), o.key(b, friendlyName("STRASSE")), o.cert(b.DER), o.cert(root.DER, friendlyName("straße"), o.trust())},
			[]string{"Straße key a", "STRASSE key b", "straße-2 trusted root"}, 1},
		{"a-name-that-is-a-number", [][]byte{o.key(a), o.cert(a.DER), o.key(b, friendlyName("1")), o.cert(b.DER)},
			[]string{"2 key a", "1 key b"}, 0},
		{"names-of-any-kind", [][]byte{o.key(a, friendlyName("🔑 \x00")), o.cert(a.DER), o.key(b, o.utf8Name("größe")), o.cert(b.DER)},
			[]string{"🔑  key a", "größe key b"}, 0},
		{"unknown-bag", [][]byte{o.bag("1.2.3", tlv(asn1.NULL)), o.key(a), o.cert(a.DER)},
			[]string{"1 key a"}, 1},
		{"certificate-that-does-not-parse", [][]byte{o.key(a, o.id("1")), o.cert(a.DER[:len(a.DER)-40], o.id("1")), o.key(b, o.id("2")), o.cert(b.DER, o.id("2"))},
			[]string{"1 key damaged: certificate", "2 key b"}, 0},
		{"key-without-certificate", [][]byte{o.key(a), o.key(b), o.cert(b.DER)},
			[]string{"1 key no certificate", "2 key b"}, 0},
		{"certificate-without-key", [][]byte{o.key(a), o.cert(a.DER), o.cert(b.DER)},
			[]string{"1 key a"}, 1},
		{"key-of-another-certificate", [][]byte{o.key(a, o.id("1")), o.cert(b.DER, o.id("1"))},
			[]string{`1 key the key does not match its certificate (subject "CN=b"), nor any other in the keystore`}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			writeFile(t, path, string(o.store(tt.bags)))
			s := mustProve(t, keymanager.Source{Paths: []string{path}})
			if diff := cmp.Diff(tt.want, verdicts(t, s)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(s.Warnings) != tt.warnings {
				t.Errorf("warnings %q, want %d", s.Warnings, tt.warnings)
			}
		})
	}
}

// verdicts returns alias, kind and, of each entry, its chain or why it is not
// usable.
func verdicts(t *testing.T, s *Store) (list []string) {
	t.Helper()
	for _, e := range s.Entries {
		why, _, _ := strings.Cut(e.Reason, ": x509")
		if e.Usable || e.Kind == keymanager.KindTrusted {
			var names []string
			for _, der := range e.Chain {
				c, err := x509.ParseCertificate(der)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, c.Subject.CommonName)
			}
			why = strings.Join(names, ",")
		}
		list = append(list, fmt.Sprintf("%s %s %s", e.Alias, e.Kind, why))
	}
	return list
}
