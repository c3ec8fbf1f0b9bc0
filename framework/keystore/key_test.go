// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	encodingasn1 "encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestOversizedRSA: keys and certificates that would take minutes to compute
// with are left alone, as of a kind that is of no use.
func TestOversizedRSA(t *testing.T) {
	n := new(big.Int).SetBit(big.NewInt(1), maxRSA, 1)
	der, err := encodingasn1.Marshal([]*big.Int{new(big.Int), n, big.NewInt(65537), n, n, n, n, n, n})
	must(t, err)
	var kind *KeyTypeError
	if _, err := parseKey(der); !errors.As(err, &kind) || kind.Type != "RSA-16385" {
		t.Errorf("key: %v", err)
	}
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	huge, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(7)}, ca.Cert, &rsa.PublicKey{N: n, E: 65537}, ca.Key)
	must(t, err)
	if c := newCertificate(huge); !errors.As(c.err, &kind) || c.parsed != nil {
		t.Errorf("certificate: %v", c.err)
	}
	path := filepath.Join(t.TempDir(), "trust.pem")
	writeFile(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: huge}))+string(ca.CertPEM()))
	certs, warnings, err := Trusted(t.Context(), path, "", keymanager.PasswordRef{}, Limits{})
	if err != nil || len(certs) != 1 || len(warnings) != 1 {
		t.Errorf("%d certificates, warnings %q, %v", len(certs), warnings, err)
	}
}
