// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"software.sslmate.com/src/go-pkcs12"
)

// demoLife is how long a throw-away certificate is valid: longer than anybody
// should serve with it.
const demoLife = 90 * 24 * time.Hour

// newDemoKeystore is the command of the child that makes a throw-away keystore.
// It ends before the front faces the network.
func newDemoKeystore() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-keystore DIR NAME...",
		Short:  "Make a throw-away CA and keystore in DIR (tlsd calls it)",
		Args:   cobra.MinimumNArgs(2),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return makeDemoKeystore(args[0], args[1:])
		},
	}
}

// makeDemoKeystore writes a CA certificate, a keystore with one entry and the
// keystore's password. The CA's key is dropped.
func makeDemoKeystore(dir string, names []string) error {
	ca, caKey, err := demoIssue(demoCATemplate(), nil, nil)
	if err != nil {
		return err
	}
	leaf, key, err := demoIssue(demoLeafTemplate(names), ca, caKey)
	if err != nil {
		return err
	}
	password := rand.Text()
	store, err := pkcs12.Modern2023.Encode(key, leaf, nil, password)
	if err != nil {
		return fmt.Errorf("encode keystore: %w", err)
	}
	for name, content := range map[string][]byte{
		demoCA:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}),
		demoKeystore: store,
		demoPassword: []byte(password),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func demoCATemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "tlsd throw-away CA"},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func demoLeafTemplate(names []string) *x509.Certificate {
	c := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
			continue
		}
		c.DNSNames = append(c.DNSNames, name)
	}
	return c
}

// demoIssue makes a key and a certificate for it, self-signed where there is no
// issuer.
func demoIssue(c, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if issuer == nil {
		issuer, issuerKey = c, key
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	c.SerialNumber = serial
	c.NotBefore = time.Now().Add(-time.Hour)
	c.NotAfter = c.NotBefore.Add(demoLife)
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}
