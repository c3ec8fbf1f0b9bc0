// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

var keyTypes = []KeyType{RSA1024, RSA2048, RSA3072, P224, P256, P384, P521, Ed25519}

func TestLeafVerifiesThroughIntermediate(t *testing.T) {
	for _, kt := range keyTypes {
		t.Run(string(kt), func(t *testing.T) {
			root := NewRoot(t, Spec{Name: "root"})
			inter := root.Issue(t, Spec{Name: "intermediate", IsCA: true, Key: kt})
			leaf := inter.Issue(t, Spec{Name: "leaf", DNS: []string{"a.example"}, Key: kt})
			pool := x509.NewCertPool()
			pool.AddCert(inter.Cert)
			_, err := leaf.Cert.Verify(x509.VerifyOptions{DNSName: "a.example", Roots: leaf.Pool(), Intermediates: pool})
			if err != nil {
				t.Error(err)
			}
			if n := len(leaf.Chain()); n != 2 {
				t.Errorf("chain of %d, want leaf and intermediate", n)
			}
		})
	}
}

func TestSpec(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	root := NewRoot(t, Spec{Name: "root"})
	tests := []struct {
		name string
		spec Spec
		want func(*x509.Certificate) bool
	}{
		{"default_usage", Spec{}, func(c *x509.Certificate) bool {
			return c.KeyUsage == x509.KeyUsageDigitalSignature && len(c.ExtKeyUsage) == 1
		}},
		{"no_usage", Spec{NoKeyUsage: true, NoEKU: true}, func(c *x509.Certificate) bool {
			return c.KeyUsage == 0 && c.ExtKeyUsage == nil
		}},
		{"expired", Spec{NotBefore: past.Add(-time.Hour), NotAfter: past}, func(c *x509.Certificate) bool {
			return c.NotAfter.Before(time.Now())
		}},
		{"sha384", Spec{SigAlg: x509.ECDSAWithSHA384}, func(c *x509.Certificate) bool {
			return c.SignatureAlgorithm == x509.ECDSAWithSHA384
		}},
		{"sha1", Spec{SigAlg: x509.ECDSAWithSHA1}, func(c *x509.Certificate) bool {
			return c.SignatureAlgorithm == x509.ECDSAWithSHA1
		}},
		{"shared_key", Spec{Signer: root.Key}, func(c *x509.Certificate) bool {
			return string(c.RawSubjectPublicKeyInfo) == string(root.Cert.RawSubjectPublicKeyInfo)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c := root.Issue(t, tt.spec); !tt.want(c.Cert) {
				t.Errorf("got %+v", c.Cert)
			}
		})
	}
}

func TestConsecutiveRSAKeysDiffer(t *testing.T) {
	seen := map[any]bool{}
	for range ringSize {
		seen[NewKey(t, RSA1024)] = true
	}
	if len(seen) != ringSize {
		t.Errorf("%d different keys of %d", len(seen), ringSize)
	}
}

func TestWritePEMIsLoadable(t *testing.T) {
	dir := t.TempDir()
	leaf := NewRoot(t, Spec{}).Issue(t, Spec{DNS: []string{"a.example"}})
	for _, key := range []string{"leaf.key", "leaf.crt"} {
		WritePEM(t, dir+"/leaf.crt", dir+"/"+key, leaf)
		if _, err := tls.LoadX509KeyPair(dir+"/leaf.crt", dir+"/"+key); err != nil {
			t.Errorf("key in %s: %v", key, err)
		}
	}
}
