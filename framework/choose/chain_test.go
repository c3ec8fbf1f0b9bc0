// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/dn"
	"github.com/tlsd/tlsd/internal/testca"
)

func TestSignatureAlgorithmsOfChains(t *testing.T) {
	rsa := testca.NewRoot(t, testca.Spec{Name: "rsa", Key: testca.RSA2048})
	ec := testca.NewRoot(t, testca.Spec{Name: "ec", Key: testca.P384})
	ed := testca.NewRoot(t, testca.Spec{Name: "ed", Key: testca.Ed25519})
	tests := []struct {
		name string
		ca   *testca.Cert
		alg  x509.SignatureAlgorithm
		want schemeSet
	}{
		{"SHA256WithRSA", rsa, x509.SHA256WithRSA, rsaSHA256},
		{"SHA384WithRSA", rsa, x509.SHA384WithRSA, rsaSHA384},
		{"SHA512WithRSA", rsa, x509.SHA512WithRSA, rsaSHA512},
		{"SHA256WithRSAPSS", rsa, x509.SHA256WithRSAPSS, pssSHA256 | pssPSSSHA256},
		{"SHA384WithRSAPSS", rsa, x509.SHA384WithRSAPSS, pssSHA384 | pssPSSSHA384},
		{"SHA512WithRSAPSS", rsa, x509.SHA512WithRSAPSS, pssSHA512 | pssPSSSHA512},
		{"ECDSAWithSHA256_of_P384", ec, x509.ECDSAWithSHA256, ecdsaSHA256},
		{"ECDSAWithSHA512", ec, x509.ECDSAWithSHA512, ecdsaSHA512},
		{"PureEd25519", ed, x509.PureEd25519, ed25519Pure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			leaf := tt.ca.Issue(t, testca.Spec{SigAlg: tt.alg})
			got, err := traitsOfChain(leaf.Cert, leaf.Chain(), ours)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.signatures) != 1 || got.signatures[0].schemes != tt.want {
				t.Errorf("signatures %+v, want schemes %x", got.signatures, tt.want)
			}
		})
	}
}

func TestSelfSignedTopIsToldFromOneOfAnotherKey(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "same"})
	cross := root.Issue(t, testca.Spec{Name: "same", IsCA: true})
	leaf := cross.Issue(t, testca.Spec{})
	for _, tt := range []struct {
		name  string
		chain [][]byte
		want  int
	}{
		{"self_signed", [][]byte{root.DER}, 0},
		{"leaf_and_self_signed", [][]byte{leaf.DER, root.DER}, 1},
		{"self_signed_below_the_top", [][]byte{root.DER, leaf.DER}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cert, err := x509.ParseCertificate(tt.chain[0])
			if err != nil {
				t.Fatal(err)
			}
			got, err := traitsOfChain(cert, tt.chain, ours)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.signatures) != tt.want {
				t.Errorf("signatures to be verified: %+v, want %d", got.signatures, tt.want)
			}
		})
	}
	var c outline
	if _, err := asn1.Unmarshal(cross.DER, &c); err != nil {
		t.Fatal(err)
	}
	if c.selfSigned(cross.Cert) {
		t.Error("a certificate signed by another key of its name counts as self-signed")
	}
}

// Names are equal as X.500 has it, not byte by byte.
func TestIssuersCompareAsX500Names(t *testing.T) {
	rdn := func(tag int, value string) []byte {
		der, err := asn1.Marshal(pkix.RDNSequence{{{
			Type:  asn1.ObjectIdentifier{2, 5, 4, 3},
			Value: asn1.RawValue{Tag: tag, Bytes: []byte(value)},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	want := dn.Canonical(rdn(asn1.TagPrintableString, "Example CA"))
	for _, tt := range []struct {
		name string
		der  []byte
		same bool
	}{
		{"same", rdn(asn1.TagPrintableString, "Example CA"), true},
		{"utf8", rdn(asn1.TagUTF8String, "Example CA"), true},
		{"case", rdn(asn1.TagUTF8String, "EXAMPLE ca"), true},
		{"space", rdn(asn1.TagUTF8String, "  Example   CA "), true},
		{"other", rdn(asn1.TagUTF8String, "ExampleCA"), false},
		{"garbage", []byte("Example CA"), false},
		{"empty", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := dn.Canonical(tt.der) == want; got != tt.same {
				t.Errorf("equal = %v", got)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	const ds, ke, ka = x509.KeyUsageDigitalSignature, x509.KeyUsageKeyEncipherment, x509.KeyUsageKeyAgreement
	tests := []struct {
		name           string
		spec           testca.Spec
		server, client bool
	}{
		{"nothing_said", testca.Spec{NoEKU: true, NoKeyUsage: true}, true, true},
		{"server_auth", testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, true, false},
		{"client_auth", testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, false, true},
		{"any", testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}, true, true},
		{"netscape", testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageNetscapeServerGatedCrypto}}, true, false},
		{"microsoft", testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageMicrosoftServerGatedCrypto}}, true, false},
		{"time_stamping", testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}}, false, false},
		{"ec_key_agreement_only", testca.Spec{NoEKU: true, KeyUsage: ka}, false, false},
		{"ec_signature_only", testca.Spec{NoEKU: true, KeyUsage: ds}, true, true},
		{"ec_encipherment_only", testca.Spec{NoEKU: true, KeyUsage: ke}, false, false},
		{"rsa_signature_only", testca.Spec{Key: testca.RSA2048, NoEKU: true, KeyUsage: ds}, true, true},
		{"rsa_encipherment_only", testca.Spec{Key: testca.RSA2048, NoEKU: true, KeyUsage: ke}, true, false},
		{"rsa_agreement_only", testca.Spec{Key: testca.RSA2048, NoEKU: true, KeyUsage: ka}, false, false},
		{"eddsa_asks_nothing", testca.Spec{Key: testca.Ed25519, NoEKU: true, KeyUsage: ka}, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			leaf := testca.SelfSigned(t, tt.spec).Cert
			for role, want := range map[keymanager.Role]bool{keymanager.RoleServer: tt.server, keymanager.RoleClient: tt.client} {
				if err := checkUsage(leaf, role, ours); (err == nil) != want {
					t.Errorf("%v: %v, want ok = %v", role, err, want)
				}
			}
		})
	}
}

func FuzzChainNeverPanics(f *testing.F) {
	leaf := testca.NewRoot(f, testca.Spec{Name: "ca"}).Issue(f, testca.Spec{DNS: []string{"w.test"}})
	f.Add(leaf.DER)
	f.Add(leaf.Cert.RawIssuer)
	f.Fuzz(func(t *testing.T, der []byte) {
		got, err := traitsOfChain(leaf.Cert, [][]byte{leaf.DER, der}, ours)
		if err == nil && len(got.issuers) != 2 {
			t.Errorf("%d issuers of a chain of two", len(got.issuers))
		}
		//lint:ignore SA4000 two calls with one argument are the point
		if dn.Canonical(der) != dn.Canonical(der) {
			t.Error("a name is not equal to itself")
		}
	})
}
