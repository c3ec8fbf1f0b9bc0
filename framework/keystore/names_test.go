// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestIssuerIsFoundByAnotherEncodingOfItsName: the leaf names it by a UTF8String,
// the file has its certificate with a PrintableString. One by the very bytes goes
// first.
func TestIssuerIsFoundByAnotherEncodingOfItsName(t *testing.T) {
	key := testca.NewKey(t, testca.P256)
	utf8 := authority(t, key, asn1.TagUTF8String, "Inter")
	printable := authority(t, key, asn1.TagPrintableString, "INTER")
	leafKey := testca.NewKey(t, testca.P256)
	leaf := issue(t, utf8, key, leafKey)
	for name, file := range map[string]struct{ certs, chain [][]byte }{
		"another": {[][]byte{leaf, printable.Raw}, [][]byte{leaf, printable.Raw}},
		"both":    {[][]byte{leaf, printable.Raw, utf8.Raw}, [][]byte{leaf, utf8.Raw}},
	} {
		t.Run(name, func(t *testing.T) {
			pkcs8, err := x509.MarshalPKCS8PrivateKey(leafKey)
			if err != nil {
				t.Fatal(err)
			}
			b := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
			for _, der := range file.certs {
				b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
			}
			path := filepath.Join(t.TempDir(), "server.pem")
			put(t, path, b)
			s := mustProve(t, keymanager.Source{Paths: []string{path}})
			if got := s.Entries[0].Chain; !slices.EqualFunc(got, file.chain, func(a, b []byte) bool { return string(a) == string(b) }) {
				t.Errorf("a chain of %d certificates, not the one that is stored", len(got))
			}
		})
	}
}

// authority is a CA certificate whose subject is one common name of the given type,
// issued by a root that isn't there.
func authority(t *testing.T, key crypto.Signer, tag int, name string) *x509.Certificate {
	t.Helper()
	subject, err := asn1.Marshal(pkix.RDNSequence{{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: asn1.RawValue{Tag: tag, Bytes: []byte(name)}}}})
	if err != nil {
		t.Fatal(err)
	}
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	return signed(t, &x509.Certificate{RawSubject: subject, IsCA: true, BasicConstraintsValid: true}, root.Cert, key.Public(), root.Key)
}

func issue(t *testing.T, ca *x509.Certificate, caKey, key crypto.Signer) []byte {
	t.Helper()
	return signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}}, ca, key.Public(), caKey).Raw
}

func signed(t *testing.T, template, parent *x509.Certificate, public, signer any) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
