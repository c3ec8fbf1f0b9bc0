// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// summary is what keytool and we both say of an entry.
type summary struct {
	Alias, Kind, Key string
	Chain            []string // SHA-256 of each certificate, leaf first
}

var (
	fingerprint   = regexp.MustCompile(`^\t SHA256: ([0-9A-F:]+)$`)
	keytoolKeyAlg = regexp.MustCompile(`^Subject Public Key Algorithm: (?:(\d+)-bit )?(\w+)`)
)

// keytoolKeyType translates what keytool calls a key's type.
func keytoolKeyType(bits, name string) string {
	switch name {
	case "RSA":
		return "RSA-" + bits
	case "EC":
		return "P-" + bits
	case "EdDSA":
		return "Ed25519"
	}
	return name
}

// keytoolList returns what keytool -list says, which it sorts by alias.
func keytoolList(t testing.TB, jdk testca.JDK, path, typ string) []summary {
	t.Helper()
	out := runTool(t, jdk.Keytool(), "-J-Duser.language=en", "-list", "-v", "-keystore", path, "-storetype", typ, "-storepass", storePassword)
	var list []summary
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		line := lines.Text()
		if alias, ok := strings.CutPrefix(line, "Alias name: "); ok {
			list = append(list, summary{Alias: alias})
		}
		if len(list) == 0 {
			continue
		}
		e := &list[len(list)-1]
		switch line {
		case "Entry type: PrivateKeyEntry":
			e.Kind = keymanager.KindKey
		case "Entry type: trustedCertEntry":
			e.Kind = keymanager.KindTrusted
		case "Entry type: SecretKeyEntry":
			e.Kind = keymanager.KindSecret
		}
		if m := fingerprint.FindStringSubmatch(line); m != nil {
			e.Chain = append(e.Chain, strings.ToLower(strings.ReplaceAll(m[1], ":", "")))
		}
		if m := keytoolKeyAlg.FindStringSubmatch(line); m != nil && e.Key == "" {
			e.Key = keytoolKeyType(m[1], m[2])
		}
	}
	return list
}

// summarize lists as keytool does: aliases in lower case and sorted.
func summarize(s *Store) []summary {
	var list []summary
	for _, e := range s.Entries {
		sum := summary{Alias: strings.ToLower(e.Alias), Kind: e.Kind, Key: e.KeyType}
		for _, der := range e.Chain {
			sum.Chain = append(sum.Chain, fmt.Sprintf("%x", sha256.Sum256(der)))
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b summary) int { return strings.Compare(a.Alias, b.Alias) })
	return list
}

// TestStoresOfKeytool: a store with every kind of entry, made by each JDK and
// converted by it to its other formats. We find what keytool lists, and keys
// that sign.
func TestStoresOfKeytool(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: left out in short mode")
	}
	for _, jdk := range testca.Keytools(t) {
		first := makeKeytoolStore(t, jdk)
		t.Run(jdk.Name()+"-pkcs12", func(t *testing.T) { testKeytoolStore(t, jdk, first, "pkcs12") })
		for _, tt := range []struct{ name, typ, flag string }{
			{"jks", "jks", ""},
			{"jceks", "jceks", ""},
			{"pkcs12-legacy", "pkcs12", "-J-Dkeystore.pkcs12.legacy"},
		} {
			t.Run(jdk.Name()+"-"+tt.name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "store")
				args := []string{"-importkeystore", "-noprompt", "-srckeystore", first, "-srcstorepass", storePassword,
					"-destkeystore", path, "-deststoretype", tt.typ, "-deststorepass", storePassword}
				if tt.flag != "" {
					args = append(args, tt.flag)
				}
				runTool(t, jdk.Keytool(), args...)
				testKeytoolStore(t, jdk, path, tt.typ)
			})
		}
	}
}

// makeKeytoolStore makes a PKCS#12 store under a name that says nothing.
func makeKeytoolStore(t testing.TB, jdk testca.JDK) string {
	t.Helper()
	dir := t.TempDir()
	path, cert := filepath.Join(dir, "store"), filepath.Join(dir, "ca.crt")
	writeFile(t, cert, string(testca.NewRoot(t, testca.Spec{Name: "ca"}).CertPEM()))
	for _, args := range [][]string{
		{"-genkeypair", "-alias", "Rsa", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=rsa.example"},
		{"-genkeypair", "-alias", "issued", "-keyalg", "EC", "-groupname", "secp384r1", "-dname", "CN=issued.example", "-signer", "rsa"},
		{"-importcert", "-noprompt", "-alias", "Straße", "-file", cert},
		{"-genseckey", "-alias", "aes", "-keyalg", "AES", "-keysize", "128"},
	} {
		runTool(t, jdk.Keytool(), append(args, "-keystore", path, "-storetype", "pkcs12", "-storepass", storePassword)...)
	}
	return path
}

func testKeytoolStore(t *testing.T, jdk testca.JDK, path, typ string) {
	s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)})
	if s.Format != Format(typ) {
		t.Errorf("format %s, want %s", s.Format, typ)
	}
	if diff := cmp.Diff(keytoolList(t, jdk, path, typ), summarize(s)); diff != "" {
		t.Errorf("keytool lists something else (-keytool +ours):\n%s", diff)
	}
	for _, alias := range []string{"rsa", "issued"} {
		if err := trySignature(s.Find(alias)); err != nil {
			t.Errorf("%s: %v", alias, err)
		}
	}
	if _, err := Open(t.Context(), keymanager.Source{Paths: []string{path}, Store: value("another")}, Limits{}); err == nil {
		t.Error("opens with another password")
	}
	certs, _, err := Trusted(t.Context(), path, "", value(storePassword), Limits{})
	if err != nil || len(certs) != 1 {
		t.Errorf("%d trusted certificates, %v", len(certs), err)
	}
}

// listAliases prints the aliases of a PKCS#12 store in the order of Java's
// KeyStore, which is that of the file.
const listAliases = `
import java.io.*;
import java.security.*;
import java.util.*;
class ListAliases {
	public static void main(String[] args) throws Exception {
		KeyStore ks = KeyStore.getInstance(new File(args[0]), args[1].toCharArray());
		PrintStream out = new PrintStream(System.out, true, "UTF-8");
		for (String alias : Collections.list(ks.aliases())) out.println(alias);
	}
}
`

// TestStoreOrderIsJavas: entries with names, without, and twice the same.
func TestStoreOrderIsJavas(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("zulu"), s.entry(""), testca.StoreEntry{Alias: "other", Cert: testca.NewRoot(t, testca.Spec{Name: "other"}), Trusted: true},
		s.entry("alpha"), s.entry(""))
	var got []string
	for _, e := range mustProve(t, s.source()).Entries {
		got = append(got, e.Alias)
	}
	program := filepath.Join(t.TempDir(), "ListAliases.java")
	writeFile(t, program, listAliases)
	for _, jdk := range testca.Keytools(t) {
		want := strings.Fields(runTool(t, jdk.Java(), program, s.path, storePassword))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s has another order (-java +ours):\n%s", jdk.Name(), diff)
		}
	}
}

// TestParametersOfOldJava: keytool reads them, and so do we.
func TestParametersOfOldJava(t *testing.T) {
	s := newShop(t)
	testca.PKCS12{OldPBES2: true}.Write(t, s.path, storePassword, s.entry("a"), s.entry("b"))
	for _, jdk := range testca.Keytools(t) {
		testOldPBES2(t, jdk, s.path)
	}
	for _, e := range mustProve(t, s.source()).Entries {
		if err := trySignature(e); err != nil {
			t.Errorf("%s: %v", e.Alias, err)
		}
	}
}

// testOldPBES2 has keytool decrypt each key and write it anew.
func testOldPBES2(t *testing.T, jdk testca.JDK, path string) {
	out := filepath.Join(t.TempDir(), "new.p12")
	runTool(t, jdk.Keytool(), "-importkeystore", "-noprompt", "-srckeystore", path, "-srcstorepass", storePassword,
		"-destkeystore", out, "-deststoretype", "pkcs12", "-deststorepass", storePassword)
	if list := keytoolList(t, jdk, out, "pkcs12"); len(list) != 2 {
		t.Errorf("%s reads %d entries of 2", jdk.Name(), len(list))
	}
}

// TestJKSOpensWithoutPassword, as in Java: its certificates are not encrypted.
func TestJKSOpensWithoutPassword(t *testing.T) {
	jdk := testca.Keytools(t)[0]
	dir := t.TempDir()
	path, cert := filepath.Join(dir, "trust.jks"), filepath.Join(dir, "ca.crt")
	writeFile(t, cert, string(testca.NewRoot(t, testca.Spec{Name: "ca"}).CertPEM()))
	runTool(t, jdk.Keytool(), "-importcert", "-noprompt", "-alias", "ca", "-file", cert, "-keystore", path, "-storetype", "jks", "-storepass", storePassword)
	certs, warnings, err := Trusted(t.Context(), path, "auto", keymanager.PasswordRef{}, Limits{})
	if err != nil || len(certs) != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], "no password") {
		t.Errorf("%d certificates, warnings %q, %v", len(certs), warnings, err)
	}
}

// TestStoresOfOpenSSL: what openssl pkcs12 -export writes, by default and not.
func TestStoresOfOpenSSL(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	tests := []struct {
		name string
		key  testca.KeyType
		pass string
		args []string
	}{
		{"default", testca.RSA2048, storePassword, nil},
		{"legacy", testca.RSA2048, storePassword, []string{"-legacy"}},
		{"no-mac", testca.P256, storePassword, []string{"-nomac"}},
		{"plain", testca.P256, storePassword, []string{"-keypbe", "NONE", "-certpbe", "NONE"}},
		{"empty-password", testca.P256, "", nil},
		{"empty-password-legacy", testca.P256, "", []string{"-legacy"}},
		{"non-ascii", testca.P256, "пароль", nil},
		{"outside-bmp", testca.P256, "🔑key", nil},
		{"outside-bmp-legacy", testca.P256, "🔑key", []string{"-legacy"}},
		{"aes128", testca.P521, storePassword, []string{"-keypbe", "AES-128-CBC", "-certpbe", "AES-192-CBC", "-macalg", "SHA512"}},
		{"sha3", testca.Ed25519, storePassword, []string{"-macalg", "SHA3-384"}},
		{"many-iterations", testca.P384, storePassword, []string{"-iter", "100000"}},
		{"ed25519", testca.Ed25519, storePassword, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			root := testca.NewRoot(t, testca.Spec{Name: "root"})
			ca := root.Issue(t, testca.Spec{Name: "ca", IsCA: true})
			leaf := ca.Issue(t, testca.Spec{Name: "leaf", Key: tt.key})
			cert, key, caFile, out := filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "ca"), filepath.Join(dir, "out")
			testca.WritePEM(t, cert, key, leaf)
			writeFile(t, caFile, string(ca.CertPEM())+string(root.CertPEM()))
			args := []string{"pkcs12", "-export", "-in", cert, "-inkey", key, "-certfile", caFile, "-name", "Größe", "-out", out, "-passout", "pass:" + tt.pass}
			runTool(t, openssl, append(args, tt.args...)...)
			e := onlyKey(t, mustProve(t, keymanager.Source{Paths: []string{out}, Store: value(tt.pass)}))
			if e.Alias != "Größe" || !e.Usable {
				t.Fatalf("alias %q, %s", e.Alias, e.Reason)
			}
			if diff := cmp.Diff(ders([]*testca.Cert{leaf, ca, root}), e.Chain); diff != "" {
				t.Error(diff)
			}
			if err := trySignature(e); err != nil {
				t.Error(err)
			}
		})
	}
}
