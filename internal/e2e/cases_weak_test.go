// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCertificateSignedWithSHA1 is for clients that say they take it.
func TestCertificateSignedWithSHA1(t *testing.T) {
	ca := rootOf(t, testca.RSA2048)
	old := issue(t, ca, testca.Spec{Name: "sha1", Key: testca.RSA2048, SigAlg: x509.SHA1WithRSA})
	good := issue(t, ca, testca.Spec{Name: "good", Key: testca.RSA2048, DNS: []string{"other.test"}})
	t.Run("beside-good", func(t *testing.T) {
		checking(t, storeWith(t, old, good), []string{"--debug", "keymanager"}, func(t *testing.T, d *daemon) {
			ask{"modern", "w.test", anyClient, "good"}.of(t, d)
			d.awaitLines(1, `"msg":"candidate rejected"`, `"alias":"sha1"`, `"rule":"chain_signature"`)
			ask{"old", "w.test", withSHA1, "sha1"}.of(t, d)
		})
	})
	t.Run("alone", func(t *testing.T) {
		checking(t, storeWith(t, old), nil, func(t *testing.T, d *daemon) { ask{"modern", "w.test", anyClient, "alert 40"}.of(t, d) })
	})
	t.Run("sunx509", func(t *testing.T) {
		d := start(t, append(storeWith(t, old, good).args(), "--keymanager", "sunx509")...)
		ask{"modern", "w.test", lax, "sha1"}.of(t, d)
	})
}

// TestCertificateSignedWithMD5 is for nobody but sunx509, as in the JDK.
func TestCertificateSignedWithMD5(t *testing.T) {
	md5 := signedWithMD5(t, rootOf(t, testca.RSA2048))
	for tier, want := range map[string]string{"pkix": "alert 40", "pkixcached": "alert 40", "sunx509": "weak"} {
		d := start(t, "--keystore", md5, "--keymanager", tier)
		ask{tier, "w.test", lax, want}.of(t, d)
	}
}

// signedWithMD5 has openssl make what Go refuses to, for w.test, and returns
// the files of certificate and key as a builder.
func signedWithMD5(t *testing.T, ca *testca.Cert) string {
	t.Helper()
	dir, openssl := t.TempDir(), testca.Tool(t, "openssl")
	at := func(name string) string { return filepath.Join(dir, name) }
	testca.WritePEM(t, at("ca.crt"), at("ca.key"), ca)
	names := writeFile(t, at("names"), []byte("subjectAltName=DNS:w.test\nkeyUsage=digitalSignature\n"))
	mustCommand(t, openssl, "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=weak", "-keyout", at("leaf.key"), "-out", at("leaf.csr"))
	mustCommand(t, openssl, "x509", "-req", "-md5", "-in", at("leaf.csr"), "-CA", at("ca.crt"), "-CAkey", at("ca.key"),
		"-CAcreateserial", "-days", "30", "-extfile", names, "-out", at("leaf.crt"))
	return at("leaf.crt") + "," + at("leaf.key")
}

// TestWeakRSA: 1024 bits are served unless a constraint says otherwise.
func TestWeakRSA(t *testing.T) {
	ca := rootOf(t, testca.RSA2048)
	weak := storeWith(t, issue(t, ca, testca.Spec{Name: "weak", Key: testca.RSA1024}))
	const limit = "-Djdk.certpath.disabledAlgorithms=RSA keySize < 2048"
	for _, tier := range tiers {
		ask{"1024-" + tier, "w.test", lax, "weak"}.of(t, start(t, append(weak.args(), "--keymanager", tier)...))
	}
	checking(t, weak, []string{limit}, func(t *testing.T, d *daemon) { ask{"constrained", "w.test", lax, "alert 40"}.of(t, d) })
	good := storeWith(t, issue(t, ca, testca.Spec{Name: "weak", Key: testca.RSA1024}), issue(t, ca, testca.Spec{Name: "good", Key: testca.RSA2048}))
	checking(t, good, []string{limit}, func(t *testing.T, d *daemon) { ask{"constrained-beside-good", "w.test", lax, "good"}.of(t, d) })
}

// TestUselessRSA: nobody can sign a TLS handshake with 512 bits.
func TestUselessRSA(t *testing.T) {
	path := filepath.Join(t.TempDir(), "512.key")
	mustCommand(t, testca.Tool(t, "openssl"), "genrsa", "-out", path, "512")
	ca := rootOf(t, testca.RSA2048)
	useless := issue(t, ca, testca.Spec{Name: "useless", Signer: readKey(t, path)})
	alone, beside := storeWith(t, useless), storeWith(t, useless, issue(t, ca, testca.Spec{Name: "good"}))
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			d := start(t, append(beside.args(), "--keymanager", tier)...)
			ask{"beside-good", "w.test", lax, "good"}.of(t, d)
			if n := len(d.awaitLines(1, `"msg":"key not usable"`)); n != 1 {
				t.Errorf("%d lines about the key:\n%s", n, d.log)
			}
			out, err := command(t, bin("tlsd"), append(alone.args(), "--keymanager", tier)...)
			if err == nil || !strings.Contains(out, `no usable key entry: "useless": RSA-512`) {
				t.Errorf("alone: %v\n%s", err, out)
			}
		})
	}
}

func readKey(t *testing.T, path string) crypto.Signer {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(crypto.Signer)
}
