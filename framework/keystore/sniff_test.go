// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestNoKeystoreIsNamed: what lies beside keystores and is mistaken for one is
// called by its name, in DER and in PEM.
func TestNoKeystoreIsNamed(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, ca.Key)
	must(t, err)
	crl, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}, ca.Cert, ca.Key)
	must(t, err)
	cert := filepath.Join(t.TempDir(), "crt")
	writeFile(t, cert, string(ca.CertPEM()))
	openssl := testca.Tool(t, "openssl")
	pkcs7 := runTool(t, openssl, "crl2pkcs7", "-nocrl", "-certfile", cert)
	block, _ := pem.Decode([]byte(pkcs7))
	// The outline of ObjectStore: encrypted data and an integrity check.
	algorithm := tlv(asn1.SEQUENCE, oidDER(t, oidPBES2))
	bcfks := tlv(asn1.SEQUENCE, tlv(asn1.SEQUENCE, algorithm, tlv(asn1.OCTET_STRING, make([]byte, 64))), tlv(asn1.SEQUENCE, algorithm, tlv(asn1.OCTET_STRING, make([]byte, 32))))
	armoured := func(typ string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der})
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"request", request, "a certificate request"},
		{"request-pem", armoured("CERTIFICATE REQUEST", request), "a certificate request"},
		{"request-pem-new", armoured("NEW CERTIFICATE REQUEST", request), "a certificate request"},
		{"crl", crl, "a revocation list"},
		{"crl-pem", armoured("X509 CRL", crl), "a revocation list"},
		{"pkcs7", block.Bytes, "PKCS#7"},
		{"pkcs7-pem", []byte(pkcs7), "openssl pkcs7 -print_certs"},
		{"bcfks", bcfks, "BCFKS"},
	} {
		var wrong *FormatError
		if format, err := sniff(tt.data); !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) || wrong.Hint == "" {
			t.Errorf("%s: format %q, %v", tt.name, format, err)
		}
	}
	if format, err := sniff(ca.DER); format != PEM || err != nil {
		t.Errorf("certificate: format %q, %v", format, err)
	}
}
