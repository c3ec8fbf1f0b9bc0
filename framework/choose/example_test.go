// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose_test

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log"
	"math/big"
	"time"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// device stands for where a plugin's keys really live: all that it hands out is
// certificates and signatures.
type device struct{ slots []slot }

type slot struct {
	label  string
	chain  [][]byte
	signer crypto.Signer
}

// newDevice returns a device with a key for each name.
func newDevice(names ...string) device {
	var d device
	for i, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			log.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			log.Fatal(err)
		}
		d.slots = append(d.slots, slot{fmt.Sprintf("slot-%d", i), [][]byte{der}, key})
	}
	return d
}

// entries is all that a plugin has to write for pkix's way of choosing.
func (d device) entries() []keymanager.Entry {
	var out []keymanager.Entry
	for _, s := range d.slots {
		out = append(out, keymanager.Entry{
			Alias: s.label, Kind: keymanager.KindKey, Chain: s.chain,
			Key: keymanager.FromSigner(s.signer), Usable: true,
		})
	}
	return out
}

// hello is what a client of today says.
func hello(name string) *keymanager.Hello {
	return &keymanager.Hello{
		Role: keymanager.RoleServer, ServerName: name, Version: tls.VersionTLS13,
		Auth:    keymanager.AuthRSA | keymanager.AuthECDSA,
		Schemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256},
		Groups:  []tls.CurveID{tls.X25519, tls.CurveP256},
	}
}

// A plugin makes entries of what its device holds and chooses as pkix does.
func ExampleNew() {
	d := newDevice("a.example", "b.example")
	chooser, err := choose.New(1, d.entries(), keymanager.Env{})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"b.example", "", "unknown.example"} {
		cred, err := chooser.Select(hello(name))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q gets %s\n", name, cred.Alias)
	}
	// Output:
	// "b.example" gets slot-1
	// "" gets slot-0
	// "unknown.example" gets slot-0
}

// Where nothing fits, the answer is an error that means just that.
func ExampleChooser_Select() {
	chooser, err := choose.New(1, newDevice("a.example").entries(), keymanager.Env{})
	if err != nil {
		log.Fatal(err)
	}
	h := hello("a.example")
	h.Schemes = []tls.SignatureScheme{tls.PSSWithSHA256} // a client that verifies RSA only
	_, err = chooser.Select(h)
	fmt.Println(errors.Is(err, keymanager.ErrNoCredential))
	// Output: true
}

// Verdicts says of every entry what became of it and why.
func ExampleChooser_Verdicts() {
	chooser, err := choose.New(1, newDevice("a.example", "b.example").entries(), keymanager.Env{})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range chooser.Verdicts(hello("b.example")) {
		fmt.Printf("%s: %v, match %v, out %v: %s\n", v.Alias, v.Class, v.Match, v.Out, cmp.Or(v.Reason, "served"))
	}
	// Output:
	// slot-1: ok, match exact, out false: served
	// slot-0: sni_mismatch, match none, out false: does not carry the name "b.example"
}

// Constraints in the syntax of java.security keep chains out.
func ExampleParseConstraints() {
	rules := "RSA keySize < 3072, secp256r1"
	c, err := choose.ParseConstraints(keymanager.Constraints{CertPath: &rules}, false)
	if err != nil {
		log.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(newDevice("a.example").slots[0].chain[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Chain([]*x509.Certificate{leaf}, keymanager.RoleServer, time.Now()))

	rules = "RSA keysize < 3072"
	_, err = choose.ParseConstraints(keymanager.Constraints{CertPath: &rules}, false)
	fmt.Println(err)
	// Output:
	// algorithm constraint "secp256r1" denies the ECDSA key of certificate "CN=a.example"
	// parse jdk.certpath.disabledAlgorithms: unknown condition "keysize" (known: keySize, jdkCA, denyAfter, usage) at position 5 of "RSA keysize < 3072"
}
