// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package testca makes what tests of TLS need: certificate authorities, leaves
// of every key type, PKCS#12 and PEM files that keytool and openssl read, and
// the tools themselves.
//
// Begin with [NewRoot] and [Cert.Issue]; write the result with [WritePKCS12] or
// [WritePEM]. It is for tests only: key derivation is cheap, RSA keys repeat
// and errors end the test. Keystores with something wrong in them are made by
// the tests that want them, from the parts here.
package testca

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// Spec describes one certificate. The zero value is an ECDSA P-256 certificate
// without a name that is valid from an hour ago for 90 days.
type Spec struct {
	Name string // common name of the subject
	DNS  []string
	IPs  []net.IP
	Key  KeyType // empty: P256

	NotBefore, NotAfter time.Time // zero: an hour ago, 90 days from now (a CA: ten years)

	KeyUsage   x509.KeyUsage // 0: digitalSignature (a CA: certSign and cRLSign)
	NoKeyUsage bool          // leave the extension out
	EKU        []x509.ExtKeyUsage
	NoEKU      bool // leave the extension out, where nil EKU means serverAuth (a CA: none)
	IsCA       bool

	SigAlg x509.SignatureAlgorithm // 0: by the issuer's key, with SHA-256 or stronger
	Signer crypto.Signer           // use this key instead of one by Key
	Serial *big.Int                // nil: random
}

// Cert is a certificate with its private key.
type Cert struct {
	Cert   *x509.Certificate
	DER    []byte
	Key    crypto.Signer
	Issuer *Cert // nil: self-signed
}

// NewRoot makes a self-signed certificate: a CA, whatever s.IsCA says. For a
// self-signed leaf use [SelfSigned].
func NewRoot(t testing.TB, s Spec) *Cert {
	t.Helper()
	s.IsCA = true
	return issue(t, nil, s)
}

// SelfSigned makes a self-signed certificate exactly as s says.
func SelfSigned(t testing.TB, s Spec) *Cert {
	t.Helper()
	return issue(t, nil, s)
}

// Issue makes a certificate signed by c. With s.IsCA it is an intermediate.
func (c *Cert) Issue(t testing.TB, s Spec) *Cert {
	t.Helper()
	return issue(t, c, s)
}

func issue(t testing.TB, issuer *Cert, s Spec) *Cert {
	t.Helper()
	key := s.Signer
	if key == nil {
		key = NewKey(t, s.Key)
	}
	template := s.template(t)
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.Cert, issuer.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatalf("make certificate %q: %v", s.Name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("parse certificate %q: %v", s.Name, err)
	}
	return &Cert{Cert: cert, DER: der, Key: key, Issuer: issuer}
}

func (s Spec) template(t testing.TB) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber:          s.Serial,
		Subject:               pkix.Name{CommonName: s.Name},
		DNSNames:              s.DNS,
		IPAddresses:           s.IPs,
		NotBefore:             s.NotBefore,
		NotAfter:              s.NotAfter,
		KeyUsage:              s.KeyUsage,
		ExtKeyUsage:           s.EKU,
		SignatureAlgorithm:    s.SigAlg,
		BasicConstraintsValid: s.IsCA,
		IsCA:                  s.IsCA,
	}
	if c.SerialNumber == nil {
		c.SerialNumber = randomSerial(t)
	}
	s.setValidity(c)
	s.setUsage(c)
	return c
}

func (s Spec) setValidity(c *x509.Certificate) {
	const day = 24 * time.Hour
	if c.NotBefore.IsZero() {
		c.NotBefore = time.Now().Add(-time.Hour)
	}
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(90 * day)
		if s.IsCA {
			c.NotAfter = time.Now().Add(3650 * day)
		}
	}
}

func (s Spec) setUsage(c *x509.Certificate) {
	if c.KeyUsage == 0 {
		c.KeyUsage = x509.KeyUsageDigitalSignature
		if s.IsCA {
			c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
		}
	}
	if s.NoKeyUsage {
		c.KeyUsage = 0
	}
	if c.ExtKeyUsage == nil && !s.IsCA {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if s.NoEKU {
		c.ExtKeyUsage = nil
	}
}

func randomSerial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n.Add(n, big.NewInt(1))
}

// Root returns the self-signed certificate that c leads to.
func (c *Cert) Root() *Cert {
	for c.Issuer != nil {
		c = c.Issuer
	}
	return c
}

// Pool returns a pool that trusts c's root.
func (c *Cert) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Root().Cert)
	return pool
}

// Chain returns the DER of c and of its issuers up to the self-signed root,
// which is left out unless it is c itself.
func (c *Cert) Chain() [][]byte {
	chain := [][]byte{c.DER}
	for c = c.Issuer; c != nil && c.Issuer != nil; c = c.Issuer {
		chain = append(chain, c.DER)
	}
	return chain
}

// CertPEM returns c alone.
func (c *Cert) CertPEM() []byte { return certPEM(c.DER) }

// ChainPEM returns Chain, leaf first.
func (c *Cert) ChainPEM() []byte { return certPEM(c.Chain()...) }

// KeyPEM returns the private key as PKCS#8, not encrypted.
func (c *Cert) KeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(c.Key)})
}

func certPEM(ders ...[]byte) []byte {
	var b bytes.Buffer
	for _, der := range ders {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return b.Bytes()
}

// pkcs8 panics for a key that is none of ours: only a signer given in a Spec
// can be.
func pkcs8(key crypto.Signer) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return der
}

// WritePEM writes c's chain and key, the key file readable by its owner only.
// Both may be the same path: then the key comes first.
func WritePEM(t testing.TB, certPath, keyPath string, c *Cert) {
	t.Helper()
	if certPath == keyPath {
		write(t, keyPath, append(c.KeyPEM(), c.ChainPEM()...))
		return
	}
	write(t, certPath, c.ChainPEM())
	write(t, keyPath, c.KeyPEM())
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
