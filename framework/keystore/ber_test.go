// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/tlsd/tlsd/internal/testca"
)

// indefinite returns values in DER as BouncyCastle and NSS write them: with
// indefinite lengths, and octet strings in pieces.
func indefinite(t testing.TB, der []byte) (ber []byte) {
	t.Helper()
	const pieces = 100
	end := []byte{0, 0}
	for s := cryptobyte.String(der); !s.Empty(); {
		var content cryptobyte.String
		var tag asn1.Tag
		if !s.ReadAnyASN1(&content, &tag) {
			t.Fatal("not DER")
		}
		switch {
		case tag&constructed != 0:
			ber = slices.Concat(ber, []byte{byte(tag), 0x80}, indefinite(t, content), end)
		case tag == asn1.OCTET_STRING && len(content) > pieces:
			ber = append(ber, joinedOctetString, 0x80)
			for piece := range slices.Chunk([]byte(content), pieces) {
				ber = append(ber, tlv(asn1.OCTET_STRING, piece)...)
			}
			ber = append(ber, end...)
		default:
			ber = append(ber, tlv(tag, content)...)
		}
	}
	return ber
}

// TestBEROpensAsDER: the same entries, the MAC checked.
func TestBEROpensAsDER(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	ca := root.Issue(t, testca.Spec{Name: "ca", IsCA: true})
	der := testca.PKCS12{}.Encode(t, storePassword,
		testca.StoreEntry{Alias: "a", Cert: ca.Issue(t, testca.Spec{Name: "a", Key: testca.RSA2048})},
		testca.StoreEntry{Alias: "root", Cert: root, Trusted: true},
		testca.StoreEntry{Alias: "b", Cert: ca.Issue(t, testca.Spec{Name: "b"})})
	s := &shop{path: filepath.Join(t.TempDir(), "store")}
	var got [2][]string
	for i, data := range [][]byte{der, indefinite(t, der)} {
		writeFile(t, s.path, string(data))
		store := mustProve(t, s.source())
		if len(store.Warnings) > 0 {
			t.Errorf("warnings %q", store.Warnings)
		}
		got[i] = verdicts(t, store)
	}
	if diff := cmp.Diff([]string{"root trusted root", "a key a,ca,root", "b key b,ca,root"}, got[0]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("BER is read as something else (-DER +BER):\n%s", diff)
	}
}
