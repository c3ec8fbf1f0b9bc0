// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestPEMAsPeopleWriteIt: order, line ends, marks and text don't matter.
func TestPEMAsPeopleWriteIt(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	ca := root.Issue(t, testca.Spec{Name: "ca", IsCA: true})
	leaf := ca.Issue(t, testca.Spec{Name: "leaf", Key: testca.RSA2048})
	cert, chain, key := string(leaf.CertPEM()), string(leaf.ChainPEM()), string(leaf.KeyPEM())
	rootPEM := string(root.CertPEM())
	tests := []struct {
		name  string
		files []string
		chain []*testca.Cert
	}{
		{"chain-then-key", []string{chain + key}, []*testca.Cert{leaf, ca}},
		{"key-then-chain", []string{key + chain}, []*testca.Cert{leaf, ca}},
		{"reversed-with-root", []string{rootPEM + string(ca.CertPEM()) + cert + key}, []*testca.Cert{leaf, ca, root}},
		{"pair", []string{chain, key}, []*testca.Cert{leaf, ca}},
		{"pair-the-other-way", []string{key, chain}, []*testca.Cert{leaf, ca}},
		{"three-files", []string{cert, key, string(ca.CertPEM())}, []*testca.Cert{leaf, ca}},
		{"crlf", []string{strings.ReplaceAll(chain+key, "\n", "\r\n")}, []*testca.Cert{leaf, ca}},
		{"bom", []string{"\ufeff" + chain + key}, []*testca.Cert{leaf, ca}},
		{"text-between", []string{"Bag Attributes\n  x: y\n" + chain + "\nsubject=CN = leaf\n" + key + "end"}, []*testca.Cert{leaf, ca}},
		{"text-that-begins-with-0", []string{"01 of 02\n" + chain + key}, []*testca.Cert{leaf, ca}},
		{"text-like-a-sequence", []string{"0\n0\b01234567\n" + chain + key}, []*testca.Cert{leaf, ca}},
		{"no-last-newline", []string{chain + strings.TrimSpace(key)}, []*testca.Cert{leaf, ca}},
		{"repeated", []string{chain + chain + key}, []*testca.Cert{leaf, ca}},
		{"der-pair", []string{string(leaf.DER), keyDER(t, key)}, []*testca.Cert{leaf}},
		{"pem-and-der", []string{chain, keyDER(t, key)}, []*testca.Cert{leaf, ca}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustProve(t, keymanager.Source{Paths: writeFiles(t, tt.files), Type: "pem"})
			e := onlyKey(t, s)
			if s.Format != PEM || e.Alias != "1" || !e.Usable || e.KeyType != "RSA-2048" {
				t.Errorf("%s, alias %q, usable %v (%s), %s", s.Format, e.Alias, e.Usable, e.Reason, e.KeyType)
			}
			if diff := cmp.Diff(ders(tt.chain), e.Chain); diff != "" {
				t.Error(diff)
			}
			if err := trySignature(e); err != nil {
				t.Error(err)
			}
		})
	}
}

func keyDER(t testing.TB, keyPEM string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(keyPEM))
	return string(block.Bytes)
}

func ders(certs []*testca.Cert) [][]byte {
	var out [][]byte
	for _, c := range certs {
		out = append(out, c.DER)
	}
	return out
}

func writeFiles(t testing.TB, contents []string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, content := range contents {
		path := filepath.Join(dir, string(rune('a'+i)))
		writeFile(t, path, content)
		paths = append(paths, path)
	}
	return paths
}

func onlyKey(t testing.TB, s *Store) *Entry {
	t.Helper()
	keys, _ := kinds(s)
	if len(keys) != 1 {
		t.Fatalf("%d keys, want 1", len(keys))
	}
	return keys[0]
}

// TestPEMKeysOfOpenSSL: every form that openssl writes keys in, each read with
// its password, refused without and with another.
func TestPEMKeysOfOpenSSL(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	const pass = "pässwörd 😀"
	tests := []struct {
		name string
		key  testca.KeyType
		args []string // after: -in KEY -out OUT
		want string   // unsupported algorithm
	}{
		{"pkcs8-default", testca.RSA2048, []string{"pkcs8", "-topk8", "-passout", "pass:" + pass}, ""},
		{"pkcs8-aes128-sha512", testca.P384, []string{"pkcs8", "-topk8", "-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512", "-passout", "pass:" + pass}, ""},
		{"pkcs8-aes192-sha1", testca.P521, []string{"pkcs8", "-topk8", "-v2", "aes-192-cbc", "-v2prf", "hmacWithSHA1", "-passout", "pass:" + pass}, ""},
		{"pkcs8-aes256-sha224", testca.P256, []string{"pkcs8", "-topk8", "-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA224", "-passout", "pass:" + pass}, ""},
		{"pkcs8-aes256-sha256", testca.P256, []string{"pkcs8", "-topk8", "-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA256", "-passout", "pass:" + pass}, ""},
		{"pkcs8-aes256-sha384", testca.P256, []string{"pkcs8", "-topk8", "-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA384", "-passout", "pass:" + pass}, ""},
		{"pkcs8-3des", testca.Ed25519, []string{"pkcs8", "-topk8", "-v2", "des3", "-passout", "pass:" + pass}, ""},
		{"pkcs8-pbes1-3des", testca.P256, []string{"pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-passout", "pass:" + pass}, ""},
		{"pkcs8-pbes1-rc2", testca.P256, []string{"pkcs8", "-topk8", "-v1", "PBE-SHA1-RC2-128", "-provider", "legacy", "-provider", "default", "-passout", "pass:" + pass}, ""},
		{"pkcs8-der", testca.P256, []string{"pkcs8", "-topk8", "-outform", "DER", "-passout", "pass:" + pass}, ""},
		{"pkcs1-aes256", testca.RSA2048, []string{"rsa", "-traditional", "-aes256", "-passout", "pass:" + pass}, ""},
		{"pkcs1-3des", testca.RSA2048, []string{"rsa", "-traditional", "-des3", "-passout", "pass:" + pass}, ""},
		{"sec1-aes128", testca.P256, []string{"ec", "-aes128", "-passout", "pass:" + pass}, ""},
		{"pkcs8-scrypt", testca.P256, []string{"pkcs8", "-topk8", "-scrypt", "-passout", "pass:" + pass}, "scrypt"},
		{"pkcs8-camellia", testca.P256, []string{"pkcs8", "-topk8", "-v2", "camellia-128-cbc", "-passout", "pass:" + pass}, "Camellia"},
		{"pkcs8-md5-des", testca.P256, []string{"pkcs8", "-topk8", "-v1", "PBE-MD5-DES", "-provider", "legacy", "-provider", "default", "-passout", "pass:" + pass}, "PBE-MD5-DES"},
		{"sec1-aria", testca.P256, []string{"ec", "-aria128", "-passout", "pass:" + pass}, "ARIA"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			cert, key, out := filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "out")
			leaf := testca.SelfSigned(t, testca.Spec{Name: "leaf", Key: tt.key})
			testca.WritePEM(t, cert, key, leaf)
			runTool(t, openssl, append(tt.args, "-in", key, "-out", out)...)
			paths := []string{cert, out}
			e := onlyKey(t, mustProve(t, keymanager.Source{Paths: paths, Store: value(pass)}))
			if tt.want != "" {
				var u *UnsupportedError
				if !errors.As(e.Err, &u) || !strings.Contains(e.Reason, tt.want) || !strings.Contains(e.Reason, "openssl pkcs8") {
					t.Errorf("got %q, want %s refused by name", e.Reason, tt.want)
				}
				return
			}
			if !e.Usable {
				t.Fatal(e.Reason)
			}
			if err := trySignature(e); err != nil {
				t.Error(err)
			}
			var wrong *PasswordError
			if e := onlyKey(t, mustProve(t, keymanager.Source{Paths: paths, Store: value("another")})); !errors.As(e.Err, &wrong) || wrong.Missing {
				t.Errorf("another password: %v", e.Err)
			}
			if e := onlyKey(t, mustProve(t, keymanager.Source{Paths: paths})); !errors.As(e.Err, &wrong) || !wrong.Missing {
				t.Errorf("no password: %v", e.Err)
			}
		})
	}
}

// TestPasswordFileSpellings: one line end is dropped and, where that doesn't
// fit, not.
func TestPasswordFileSpellings(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, password, file string }{
		{"bare", "secret", "secret"},
		{"lf", "secret", "secret\n"},
		{"crlf", "secret", "secret\r\n"},
		{"bom", "secret", "\ufeffsecret\n"},
		{"spaces", " secret ", " secret \n"},
		{"lf-belongs-to-it", "secret\n", "secret\n"},
		{"non-ascii", "schlüssel", "schlüssel\n"},
		{"latin-1-file", "schlüssel", "schl\xfcssel\n"},
		{"outside-bmp", "🔑", "🔑\n"},
		{"empty", "", ""},
		{"empty-line", "", "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t)
			testca.WritePKCS12(t, s.path, tt.password, s.entry("a"))
			pass := filepath.Join(dir, tt.name)
			writeFile(t, pass, tt.file)
			src := keymanager.Source{Paths: []string{s.path}, Store: keymanager.PasswordRef{File: pass}}
			if e := onlyKey(t, mustProve(t, src)); !e.Usable {
				t.Error(e.Reason)
			}
		})
	}
}

// TestTrusted: which certificates of which files are trusted.
func TestTrusted(t *testing.T) {
	root, other := testca.NewRoot(t, testca.Spec{Name: "root"}), testca.NewRoot(t, testca.Spec{Name: "other"})
	leaf := root.Issue(t, testca.Spec{Name: "leaf"})
	dir := t.TempDir()
	bundle, mixed, keyOnly := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "mixed.p12"), filepath.Join(dir, "key.p12")
	nokeys, keyFile := filepath.Join(dir, "nokeys.p12"), filepath.Join(dir, "key.pem")
	writeFile(t, bundle, string(root.CertPEM())+string(other.CertPEM())+string(root.CertPEM()))
	writeFile(t, keyFile, string(leaf.KeyPEM()))
	testca.WritePKCS12(t, mixed, storePassword, testca.StoreEntry{Alias: "server", Cert: leaf},
		testca.StoreEntry{Alias: "other", Cert: other, Trusted: true})
	testca.WritePKCS12(t, keyOnly, storePassword, testca.StoreEntry{Alias: "server", Cert: leaf})
	runTool(t, testca.Tool(t, "openssl"), "pkcs12", "-export", "-nokeys", "-in", bundle, "-out", nokeys, "-passout", "pass:"+storePassword)
	pw := value(storePassword)
	tests := []struct {
		name, path string
		pw         keymanager.PasswordRef
		want       []string
		warning    string
		err        string
	}{
		{"pem", bundle, keymanager.PasswordRef{}, []string{"root", "other"}, "", ""},
		{"java-keystore-with-key", mixed, pw, []string{"other"}, "", ""},
		{"openssl-nokeys", nokeys, pw, []string{"root", "other"}, "all are taken", ""},
		{"key-only", keyOnly, pw, nil, "", "no trusted certificate"},
		{"pem-of-a-key", keyFile, pw, nil, "", "no trusted certificate"},
		{"encrypted-without-password", mixed, keymanager.PasswordRef{}, nil, "", "needs a password: give one with --client-ca-password-file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			certs, warnings, err := Trusted(t.Context(), tt.path, "", tt.pw, Limits{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, names(certs)); diff != "" {
				t.Error(diff)
			}
			if got := strings.Join(warnings, "\n"); !strings.Contains(got, tt.warning) || tt.warning == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
		})
	}
}

func names(certs []*x509.Certificate) []string {
	var out []string
	for _, c := range certs {
		out = append(out, c.Subject.CommonName)
	}
	return out
}
