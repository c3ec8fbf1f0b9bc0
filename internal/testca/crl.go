// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// CRL describes a revocation list. The zero value revokes nothing for a week.
type CRL struct {
	Revoked    []*Cert
	Serials    []*big.Int // more that is revoked
	Number     int64
	ThisUpdate time.Time // zero: an hour ago
	NextUpdate time.Time // zero: in a week

	Extensions      []pkix.Extension // of the list
	EntryExtensions []pkix.Extension // of each entry
}

// CRL returns a revocation list of c in DER.
func (c *Cert) CRL(t testing.TB, s CRL) []byte {
	t.Helper()
	template := &x509.RevocationList{
		Number: big.NewInt(s.Number), ThisUpdate: s.ThisUpdate, NextUpdate: s.NextUpdate, ExtraExtensions: s.Extensions,
	}
	if s.ThisUpdate.IsZero() {
		template.ThisUpdate = time.Now().Add(-time.Hour)
	}
	if s.NextUpdate.IsZero() {
		template.NextUpdate = time.Now().Add(7 * 24 * time.Hour)
	}
	serials := s.Serials
	for _, r := range s.Revoked {
		serials = append(serials, r.Cert.SerialNumber)
	}
	for _, serial := range serials {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: serial, RevocationTime: template.ThisUpdate, ExtraExtensions: s.EntryExtensions,
		})
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// CRLPEM returns lists in PEM.
func CRLPEM(ders ...[]byte) []byte {
	var b []byte
	for _, der := range ders {
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})...)
	}
	return b
}
