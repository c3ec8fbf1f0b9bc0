// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/tlsd/tlsd/framework/keystore"
)

// keyTypes are the values of --key.
func keyTypes() []string {
	return []string{"rsa2048", "rsa3072", "rsa4096", "p256", "p384", "p521", "ed25519"}
}

// keyMaker returns what makes keys of a type, whose case and hyphens do not
// count.
func keyMaker(typ string) (func() (crypto.Signer, error), bool) {
	ec := func(c elliptic.Curve) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return ecdsa.GenerateKey(c, rand.Reader) }
	}
	rs := func(bits int) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, bits) }
	}
	switch strings.ToLower(strings.ReplaceAll(typ, "-", "")) {
	case "rsa2048":
		return rs(2048), true
	case "rsa3072":
		return rs(3072), true
	case "rsa4096":
		return rs(4096), true
	case "p256":
		return ec(elliptic.P256()), true
	case "p384":
		return ec(elliptic.P384()), true
	case "p521":
		return ec(elliptic.P521()), true
	case "ed25519":
		return func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		}, true
	}
	return nil, false
}

// dnsName is a host name, its first label possibly a wildcard.
var dnsName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

func checkName(name string) error {
	if net.ParseIP(name) == nil && (!dnsName.MatchString(name) || len(name) > 253) {
		return fmt.Errorf("flag --name: %q is neither a DNS name nor an IP address (an international name is written as xn--…)", name)
	}
	return nil
}

// made is what create writes.
type made struct {
	store, ca []byte // ca: PEM, or nil
	leaf      *x509.Certificate
}

// iterations of each key derivation: keytool's.
const iterations = 10_000

// build makes keys, certificates and the store.
func (c *creation) build(ctx context.Context, password string) (*made, error) {
	newKey, _ := keyMaker(c.key)
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	defer keystore.Wipe(key)
	m := &made{}
	leaf, issuers, err := c.certify(key)
	if err != nil {
		return nil, err
	}
	m.leaf = leaf
	for _, ca := range issuers {
		m.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	}
	store, err := pkcs12.Modern2023.WithIterations(iterations).Encode(key, leaf, issuers, password)
	if err != nil {
		return nil, fmt.Errorf("encode keystore %q: %w", c.file, err)
	}
	m.store, err = keystore.SetAlias(ctx, store, c.alias, password)
	return m, err
}

// certify makes the certificate of key, self-signed or by a CA whose
// certificate it returns too: the rest of the chain.
func (c *creation) certify(key crypto.Signer) (leaf *x509.Certificate, issuers []*x509.Certificate, err error) {
	template := leafTemplate(c.names)
	if c.ca == "" {
		leaf, err = c.issue(template, key.Public(), template, key)
		return leaf, nil, err
	}
	newKey, _ := keyMaker(c.key)
	caKey, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	defer keystore.Wipe(caKey)
	caTemplate := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA of " + template.Subject.CommonName},
		IsCA:    true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	issuer, err := c.issue(caTemplate, caKey.Public(), caTemplate, caKey)
	if err != nil {
		return nil, nil, err
	}
	leaf, err = c.issue(template, key.Public(), issuer, caKey)
	return leaf, []*x509.Certificate{issuer}, err
}

// leafTemplate is a server's certificate for names and addresses.
func leafTemplate(names []string) *x509.Certificate {
	const maxCommonName = 64 - len("test CA of ") // RFC 5280, A.1: ub-common-name
	c := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0][:min(len(names[0]), maxCommonName)]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for i, name := range names {
		switch ip := net.ParseIP(name); {
		case slices.Contains(names[:i], name):
		case ip != nil:
			c.IPAddresses = append(c.IPAddresses, ip)
		default:
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	return c
}

// issue signs a certificate that is valid from an hour ago, since clocks differ.
func (c *creation) issue(template *x509.Certificate, public crypto.PublicKey, issuer *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.AddDate(0, 0, c.days)
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, public, key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}
