// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// A list of schemes that is about handshakes only rules no chain out but one
// that by now nobody verifies unless they say so.
func TestSchemesThatAreNotAboutChains(t *testing.T) {
	rsa := testca.NewRoot(t, testca.Spec{Name: "rsa", Key: testca.RSA2048})
	ec := testca.NewRoot(t, testca.Spec{Name: "ec"})
	leaf := func(ca *testca.Cert, alg x509.SignatureAlgorithm) *testca.Cert {
		return ca.Issue(t, testca.Spec{DNS: []string{"a.test"}, Key: testca.RSA2048, SigAlg: alg})
	}
	for _, tt := range []struct {
		name                string
		leaf                *testca.Cert
		schemes             []tls.SignatureScheme
		alone, besideChains string
	}{
		{"pkcs1", leaf(rsa, x509.SHA256WithRSA), []tls.SignatureScheme{tls.PSSWithSHA256}, "", "e"},
		{"pkcs1-offered", leaf(rsa, x509.SHA256WithRSA), []tls.SignatureScheme{tls.PSSWithSHA256, tls.PKCS1WithSHA256}, "e", "e"},
		{"ecdsa", leaf(ec, x509.ECDSAWithSHA256), []tls.SignatureScheme{tls.PSSWithSHA256}, "", "e"},
		{"sha1", leaf(rsa, x509.SHA1WithRSA), []tls.SignatureScheme{tls.PSSWithSHA256}, "", ""},
		{"sha1-offered", leaf(rsa, x509.SHA1WithRSA), []tls.SignatureScheme{tls.PSSWithSHA256, tls.PKCS1WithSHA1}, "e", "e"},
	} {
		for _, mk := range []maker{New, newAsJDK} {
			c := mustNew(t, mk, keymanager.Env{}, entry("e", tt.leaf))
			h := schemes(modern("a.test"), tt.schemes...)
			if got := pick(t, c, h); got != tt.alone {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.alone)
			}
			h.ChainsElsewhere = true
			if got := pick(t, c, h); got != tt.besideChains {
				t.Errorf("%s with a list for chains: %q, want %q", tt.name, got, tt.besideChains)
			}
		}
	}
}
