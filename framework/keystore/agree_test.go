// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bufio"
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// generatedStores writes PKCS#12 stores of every writer at hand but keytool,
// whose own are TestStoresOfKeytool's. The store's password is storePassword.
func generatedStores(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := make(map[string]string)
	at := func(name string) string {
		paths[name] = filepath.Join(dir, name)
		return paths[name]
	}
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	ca := root.Issue(t, testca.Spec{Name: "ca", IsCA: true})
	leaf := func(typ testca.KeyType) *testca.Cert { return ca.Issue(t, testca.Spec{Name: "leaf", Key: typ}) }
	whole := func(c *testca.Cert) [][]byte { return append(c.Chain(), root.DER) }

	rsa, ec := leaf(testca.RSA2048), leaf(testca.P384)
	testca.WritePKCS12(t, at("several"), storePassword,
		testca.StoreEntry{Alias: "zulu", Cert: rsa},
		testca.StoreEntry{Alias: "Alpha", Cert: ec, Chain: whole(ec)},
		testca.StoreEntry{Alias: "root", Cert: root, Trusted: true},
		testca.StoreEntry{Alias: "own", Cert: testca.SelfSigned(t, testca.Spec{Name: "own", Key: testca.Ed25519})})
	testca.PKCS12{PlainCerts: true}.Write(t, at("plain-certificates"), storePassword, testca.StoreEntry{Alias: "a", Cert: rsa})
	testca.WritePKCS12(t, at("unnamed"), storePassword, testca.StoreEntry{Cert: rsa}, testca.StoreEntry{Cert: ec})

	for name, encoder := range encoders() {
		if name == "passwordless" || name == "modern-2026" {
			continue // keytool wants a password, and JDK 17 knows no PBMAC1
		}
		data, err := encoder.Encode(ec.Key, ec.Cert, []*x509.Certificate{root.Cert, ca.Cert}, storePassword)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, at("go-"+name), string(data))
	}

	cert, key, cas := filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "cas")
	testca.WritePEM(t, cert, key, rsa)
	writeFile(t, cas, string(root.CertPEM())+string(ca.CertPEM()))
	for name, args := range map[string][]string{
		"openssl":        nil,
		"openssl-legacy": {"-legacy"},
		"openssl-plain":  {"-keypbe", "NONE", "-certpbe", "NONE"},
	} {
		args = append([]string{"pkcs12", "-export", "-in", cert, "-inkey", key, "-certfile", cas, "-name", "Web", "-out", at(name), "-passout", "pass:" + storePassword}, args...)
		runTool(t, testca.Tool(t, "openssl"), args...)
	}
	return paths
}

// TestSameAsKeytoolOnGeneratedStores compares aliases, kinds, key types and
// whole chains. Three differences are known. keytool has aliases in lower case,
// and prints them sorted: summarize evens that out, and the order itself is
// TestStoreOrderIsJavas's. And keytool passes over keys that are not encrypted.
func TestSameAsKeytoolOnGeneratedStores(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: left out in short mode")
	}
	jdks := testca.Keytools(t)
	for name, path := range generatedStores(t) {
		if name == "openssl-plain" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ours := summarize(mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)}))
			for _, jdk := range jdks {
				if diff := cmp.Diff(keytoolList(t, jdk, path, "pkcs12"), ours); diff != "" {
					t.Errorf("%s lists something else (-keytool +ours):\n%s", jdk.Name(), diff)
				}
			}
		})
	}
}

// TestSameAsOpenSSLOnGeneratedStores compares the keys' names in their order,
// and the certificates of all entries with those that openssl finds.
func TestSameAsOpenSSLOnGeneratedStores(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	for name, path := range generatedStores(t) {
		t.Run(name, func(t *testing.T) {
			args := []string{"pkcs12", "-in", path, "-passin", "pass:" + storePassword, "-nodes"}
			if strings.Contains(name, "legacy") {
				args = append(args, "-legacy")
			}
			theirs, certs := opensslKeys(runTool(t, openssl, args...))
			s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)})
			var ours []string
			for _, e := range s.Entries {
				if e.Kind != keymanager.KindKey {
					continue
				}
				ours = append(ours, e.Alias)
				if !e.Usable {
					t.Errorf("%s: %s", e.Alias, e.Reason)
				}
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("keys in another order (-openssl +ours):\n%s", diff)
			}
			if certs != len(s.certs) {
				t.Errorf("openssl finds %d certificates, we %d", certs, len(s.certs))
			}
		})
	}
}

// opensslKeys returns the names of the keys that openssl pkcs12 prints, in
// order. One without a name has its number.
func opensslKeys(out string) (keys []string, certs int) {
	name, unnamed := "", 0
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		line := lines.Text()
		switch {
		case line == "Bag Attributes":
			name = ""
		case strings.HasPrefix(line, "    friendlyName: "):
			name = strings.TrimPrefix(line, "    friendlyName: ")
		case line == "-----BEGIN PRIVATE KEY-----" && name == "":
			unnamed++
			keys = append(keys, string(rune('0'+unnamed)))
		case line == "-----BEGIN PRIVATE KEY-----":
			keys = append(keys, name)
		case line == "-----BEGIN CERTIFICATE-----":
			certs++
		}
	}
	return keys, certs
}
