// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"
)

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), args[0], err, out)
	}
	return string(out)
}

func lines(out, prefix string) (found []string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

// threeEntries are two keys under one intermediate and a trusted certificate of
// another CA: a JDK would complete the chains with their own root.
func threeEntries(t *testing.T) []StoreEntry {
	t.Helper()
	root := NewRoot(t, Spec{Name: "root"})
	inter := root.Issue(t, Spec{Name: "intermediate", IsCA: true})
	return []StoreEntry{
		{Alias: "one", Cert: inter.Issue(t, Spec{Name: "leaf one", Key: RSA2048})},
		{Alias: "zwei €", Cert: inter.Issue(t, Spec{Name: "leaf two"})},
		{Alias: "other", Cert: NewRoot(t, Spec{Name: "other root"}), Trusted: true},
	}
}

func TestKeytoolReadsPKCS12(t *testing.T) {
	for _, plain := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "a.p12")
		PKCS12{PlainCerts: plain}.Write(t, path, "changeit", threeEntries(t)...)
		for _, jdk := range Keytools(t) {
			out := run(t, jdk.Keytool(), "-J-Dfile.encoding=UTF-8", "-J-Dstdout.encoding=UTF-8", "-J-Dsun.stdout.encoding=UTF-8",
				"-list", "-v", "-keystore", path, "-storepass", "changeit")
			types := lines(out, "Entry type:")
			slices.Sort(types)
			if want := []string{"PrivateKeyEntry", "PrivateKeyEntry", "trustedCertEntry"}; !slices.Equal(types, want) {
				t.Errorf("%s, plain %v: entries %v, want %v", jdk.Name(), plain, types, want)
			}
			if got, want := lines(out, "Certificate chain length:"), []string{"2", "2"}; !slices.Equal(got, want) {
				t.Errorf("%s, plain %v: chain lengths %v, want %v", jdk.Name(), plain, got, want)
			}
		}
	}
}

// getKey is a Java program: keytool refuses to be told a key's own password.
const getKey = `
import java.io.File;
import java.security.KeyStore;

class GetKey {
	public static void main(String[] a) throws Exception {
		KeyStore ks = KeyStore.getInstance(new File(a[0]), a[1].toCharArray());
		System.out.println("key: " + ks.getKey(a[2], a[3].toCharArray()).getAlgorithm());
	}
}
`

func TestJavaDecryptsKeyByItsOwnPassword(t *testing.T) {
	dir := t.TempDir()
	leaf := NewRoot(t, Spec{Name: "root"}).Issue(t, Spec{Name: "leaf"})
	WritePKCS12(t, dir+"/a.p12", "changeit", StoreEntry{Alias: "one", Cert: leaf, KeyPassword: "other"})
	write(t, dir+"/GetKey.java", []byte(getKey))
	for _, jdk := range Keytools(t) {
		out := run(t, jdk.Java(), dir+"/GetKey.java", dir+"/a.p12", "changeit", "one", "other")
		if got := lines(out, "key:"); !slices.Equal(got, []string{"EC"}) {
			t.Errorf("%s: got key %q, want EC", jdk.Name(), got)
		}
	}
}

func TestOpensslReadsPKCS12(t *testing.T) {
	openssl := Tool(t, "openssl")
	path := filepath.Join(t.TempDir(), "a.p12")
	WritePKCS12(t, path, "changeit", threeEntries(t)...)
	out := run(t, openssl, "pkcs12", "-in", path, "-passin", "pass:changeit", "-nodes")
	if got := strings.Count(out, "BEGIN PRIVATE KEY"); got != 2 {
		t.Errorf("%d keys, want 2", got)
	}
	if got := strings.Count(out, "BEGIN CERTIFICATE"); got != 4 {
		t.Errorf("%d certificates, want 2 leaves, one intermediate, one trusted", got)
	}
	if got := lines(out, "friendlyName:"); len(got) != 5 {
		t.Errorf("friendly names %q, want those of 2 keys and 3 certificates", got)
	}
}

func TestGoReadsPKCS12OfEveryKeyType(t *testing.T) {
	for _, kt := range keyTypes {
		t.Run(string(kt), func(t *testing.T) {
			leaf := NewRoot(t, Spec{Name: "root"}).Issue(t, Spec{Name: "leaf", Key: kt})
			for _, password := range []string{"changeit", "", "pass wörd"} {
				store := PKCS12{Iterations: 3}.Encode(t, password, StoreEntry{Alias: "a", Cert: leaf})
				key, cert, err := pkcs12.Decode(store, password)
				if err != nil {
					t.Fatal(err)
				}
				if !cert.Equal(leaf.Cert) || key == nil {
					t.Errorf("got certificate %v", cert.Subject)
				}
			}
		})
	}
}
