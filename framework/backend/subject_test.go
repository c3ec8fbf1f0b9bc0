// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/internal/testca"
)

func raw(tag int, s string) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassUniversal, Tag: tag, Bytes: []byte(s)}
}

func at(oid string, v any) pkix.AttributeTypeAndValue {
	ids := map[string]asn1.ObjectIdentifier{
		"CN": {2, 5, 4, 3}, "C": {2, 5, 4, 6}, "L": {2, 5, 4, 7}, "ST": {2, 5, 4, 8}, "STREET": {2, 5, 4, 9}, "O": {2, 5, 4, 10}, "OU": {2, 5, 4, 11},
		"serialNumber": {2, 5, 4, 5}, "UID": {0, 9, 2342, 19200300, 100, 1, 1}, "DC": {0, 9, 2342, 19200300, 100, 1, 25},
		"email": {1, 2, 840, 113549, 1, 9, 1}, "own": {1, 3, 6, 1, 4, 1, 99999, 1},
	}
	return pkix.AttributeTypeAndValue{Type: ids[oid], Value: v}
}

func encodeName(t testing.TB, rdns ...pkix.RelativeDistinguishedNameSET) []byte {
	t.Helper()
	der, err := asn1.Marshal(pkix.RDNSequence(rdns))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

type rdn = pkix.RelativeDistinguishedNameSET

type subjectTest struct {
	name string
	der  []byte
	want string
}

func subjectTests(t testing.TB) []subjectTest {
	cn := func(s string) []byte { return encodeName(t, rdn{at("CN", raw(asn1.TagUTF8String, s))}) }
	return []subjectTest{
		{"plain", encodeName(t, rdn{at("C", "DE")}, rdn{at("O", "Example GmbH")}, rdn{at("OU", "A")}, rdn{at("CN", "alice")}),
			"CN=alice,OU=A,O=Example GmbH,C=DE"},
		{"all-keywords", encodeName(t, rdn{at("DC", raw(asn1.TagIA5String, "test"))}, rdn{at("STREET", "s")}, rdn{at("L", "l")}, rdn{at("ST", "st")}, rdn{at("UID", "u")}),
			"UID=u,ST=st,L=l,STREET=s,DC=test"},
		{"several-in-one", encodeName(t, rdn{at("CN", "a"), at("UID", "b")}), "CN=a+UID=b"},
		{"special", cn(`a,b+c"d\e<f>g;h=i#j`), `CN=a\,b\+c\"d\\e\<f\>g\;h\=i\#j`},
		{"blanks", cn("  a  b  "), `CN=\  a  b \ `},
		{"one-blank", cn(" "), `CN=\ `},
		{"sharp-first", cn("#1"), `CN=\#1`},
		{"header-injection", cn("a\r\nX-Admin: yes"), `CN=a\0D\0AX-Admin: yes`},
		{"zero-and-delete", cn("a\x00b\x7f"), `CN=a\00b\7F`},
		{"utf8", cn("Zoë €"), `CN=Zo\C3\AB\20\E2\82\AC`},
		{"utf8-blanks", cn(" a é  é b é "), `CN=\ a\20\C3\A9\20\20\C3\A9 b\20\C3\A9\ `},
		{"pretends-more", cn("a,O=Bank"), `CN=a\,O\=Bank`},
		{"empty-value", cn(""), `CN=`},
		{"email", encodeName(t, rdn{at("email", raw(asn1.TagIA5String, "a@b"))}), "1.2.840.113549.1.9.1=#1603614062"},
		{"serial-number", encodeName(t, rdn{at("serialNumber", "7")}), "2.5.4.5=#130137"},
		{"own-attribute", encodeName(t, rdn{at("own", raw(asn1.TagUTF8String, "x"))}), "1.3.6.1.4.1.99999.1=#0c0178"},
		{"bmp-string", encodeName(t, rdn{at("O", raw(asn1.TagBMPString, "\x00a"))}), "O=#1e020061"},
		{"empty-name", encodeName(t), ""},
		{"no-name", []byte("junk"), ""},
		{"name-and-more", append(encodeName(t), 0), ""},
	}
}

func TestSubjectText(t *testing.T) {
	for _, tt := range subjectTests(t) {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, subjectText(tt.der)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJavaReadsSubjectText(t *testing.T) {
	for _, jdk := range testca.Keytools(t) {
		t.Run(jdk.Name(), func(t *testing.T) {
			var in strings.Builder
			var names []string
			for _, tt := range subjectTests(t) {
				if strings.Contains(tt.name, "no-name") || strings.Contains(tt.name, "more") {
					continue // no name at all, which Java can't have read either
				}
				names = append(names, tt.name)
				in.WriteString(base64.StdEncoding.EncodeToString(tt.der) + "\t" + subjectText(tt.der) + "\n")
			}
			cmd := exec.CommandContext(t.Context(), jdk.Java(), filepath.Join("testdata", "Subjects.java"))
			cmd.Stdin = strings.NewReader(in.String())
			out, err := cmd.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if err != nil || len(lines) != len(names) {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, line := range lines {
				if line != "same" {
					t.Errorf("%s: %s", names[i], line)
				}
			}
		})
	}
}

// FuzzSubjectText holds that no name makes anything but printable ASCII.
func FuzzSubjectText(f *testing.F) {
	for _, tt := range subjectTests(f) {
		f.Add(tt.der)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		for _, c := range []byte(subjectText(der)) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q", subjectText(der))
			}
		}
	})
}
