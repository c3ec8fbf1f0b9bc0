// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// shelf makes keystores, each with a certificate of its own for NAME.test, for one
// tlsd.
type shelf struct {
	*testing.T
	dir    string
	ca     *testca.Cert
	stores []keystoreFile
}

// keystoreFile is a keystore on a shelf.
type keystoreFile struct {
	name, path    string // name is its alias too, but for PEM
	password      string // files
	keyPassword   string
	withoutAnName bool // PEM: entries have numbers
}

func newShelf(t *testing.T) *shelf {
	return &shelf{T: t, dir: t.TempDir(), ca: rootOf(t, testca.P256)}
}

func (s *shelf) at(name string) string { return filepath.Join(s.dir, name) }

// leaf issues the certificate of a keystore and writes it.
func (s *shelf) leaf(name string, kt testca.KeyType) (c *testca.Cert, cert, key string) {
	s.Helper()
	c = issue(s.T, s.ca, testca.Spec{Name: name, DNS: []string{name + ".test"}, Key: kt})
	cert, key = s.at(name+".crt"), s.at(name+".key")
	testca.WritePEM(s.T, cert, key, c)
	return c, cert, key
}

// p12 has openssl make a keystore; password is what its password file says, spoken
// is what openssl is told.
func (s *shelf) p12(name, spoken, password string, args ...string) {
	s.Helper()
	_, cert, key := s.leaf(name, testca.P256)
	given := writeFile(s.T, s.at(name+".given"), []byte(spoken+"\n"))
	f := keystoreFile{name: name, path: s.at(name + ".p12"), password: writeFile(s.T, s.at(name+".pass"), []byte(password))}
	mustCommand(s.T, testca.Tool(s.T, "openssl"), append([]string{"pkcs12", "-export", "-inkey", key, "-in", cert, "-name", name,
		"-passout", "file:" + given, "-out", f.path}, args...)...)
	s.stores = append(s.stores, f)
}

// pem puts the content of a PEM file on the shelf.
func (s *shelf) pem(name, content string) {
	s.Helper()
	s.stores = append(s.stores, keystoreFile{name: name, path: writeFile(s.T, s.at(name+".pem"), []byte(content)), withoutAnName: true,
		keyPassword: writeFile(s.T, s.at(name+".kpass"), []byte("keysecret"))})
}

// config is for a tier that looks at names and for one that only obeys aliases.
func (s *shelf) config() string {
	var b strings.Builder
	b.WriteString("keystores:\n")
	for _, f := range s.stores {
		fmt.Fprintf(&b, "  - path: %s\n", f.path)
		for option, file := range map[string]string{"password_file": f.password, "key_password_file": f.keyPassword} {
			if file != "" {
				fmt.Fprintf(&b, "    %s: %s\n", option, file)
			}
		}
	}
	b.WriteString("listeners:\n  - hosts:\n")
	for _, f := range s.stores {
		if !f.withoutAnName {
			fmt.Fprintf(&b, "      - {names: [%s.test], alias: %s}\n", f.name, f.name)
		}
	}
	return b.String()
}

// TestCaseK_StoresOfOpenSSL: K01, K02, K03, K06, K07, K08: every store is served
// under every tier, whatever the locale is, and what has no MAC is warned of.
func TestCaseK_StoresOfOpenSSL(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const password, umlauts = "changeit", "pässwörd€"
	s.p12("k01-default", password, password)
	s.p12("k01-iterations", password, password, "-iter", "100000", "-keypbe", "AES-128-CBC")
	s.p12("k02-legacy", password, password, "-legacy")
	s.p12("k02-3des", password, password, "-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES", "-macalg", "sha1")
	for _, mac := range []string{"sha1", "sha224", "sha256", "sha384", "sha512"} {
		s.p12("k03-"+mac, password, password, "-macalg", mac)
	}
	s.p12("k06-empty-file", "", "")
	s.p12("k06-line-end", "", "\n")
	s.p12("k06-legacy", "", "", "-legacy")
	s.p12("k07-nomac", password, password, "-nomac")
	s.p12("k07-plain-certs", password, password, "-certpbe", "NONE")
	s.p12("k07-both", password, password, "-nomac", "-certpbe", "NONE")
	s.p12("k08-umlauts", umlauts, umlauts)
	s.p12("k08-legacy", umlauts, "\ufeff"+umlauts+"\r\n", "-legacy")
	config := writeFile(t, s.at("tlsd.yaml"), []byte(s.config()))
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			d := startWith(t, options{env: []string{"LC_ALL=C", "LANG=C"}, args: []string{"--config", config, "--keymanager", tier}})
			for _, f := range s.stores {
				checkServed(t, d, f.name+".test", f.name)
			}
			if n := len(d.awaitLines(2, "the keystore has no MAC: its integrity is not checked")); n != 2 {
				t.Errorf("%d warnings of two stores without a MAC\n%s", n, d.log)
			}
		})
	}
	t.Run("wrong", func(t *testing.T) {
		for _, f := range s.stores {
			if strings.HasPrefix(f.name, "k07") { // no MAC, or nothing else that tells
				continue
			}
			out := mustNotStart(t, "--keystore", f.path, "--keystore-password-file", writeFile(t, s.at("wrong"), []byte("S3cr3t-4711")))
			if !strings.Contains(out, f.path) || !strings.Contains(out, "wrong password") || strings.Contains(out, "S3cr3t") {
				t.Errorf("%s: %s", f.name, out)
			}
		}
	})
}

// mustNotStart runs tlsd, which must end with status 2 and one line on why, and
// returns that line.
func mustNotStart(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, bin("tlsd"), append([]string{"--listen", freeAddr(t), "--log-format", "json"}, args...)...)
	var said []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") {
			said = append(said, line)
		}
	}
	if err == nil || err.Error() != "exit status 2" || len(said) != 1 {
		t.Errorf("%q: %v\n%s", args, err, out)
	}
	return strings.Join(said, "")
}

// TestCaseK14_PEMFromAnywhere: marks, line ends, text and every form of key.
func TestCaseK14_PEMFromAnywhere(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	openssl := testca.Tool(t, "openssl")
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	parts := func(name string, kt testca.KeyType) (cert, key string) {
		_, c, k := s.leaf(name, kt)
		return read(c), read(k)
	}
	cert, key := parts("bom", testca.P256)
	s.pem("bom", "\ufeff"+cert+key)
	cert, key = parts("crlf", testca.P256)
	s.pem("crlf", strings.ReplaceAll("\ufeff"+key+cert, "\n", "\r\n"))
	cert, key = parts("latin1", testca.P256)
	s.pem("latin1", "Gr\xfc\xdfe\n"+cert+"Schl\xfcssel:\n"+key+"\xe4\n")
	cert, key = parts("bags", testca.P256)
	bag := "Bag Attributes\n    friendlyName: a\n    localKeyID: 4F 3C \n"
	s.pem("bags", bag+"subject=CN = bags\n"+cert+bag+"Key Attributes: <No Attributes>\n"+key)
	for name, kt := range map[string]testca.KeyType{"sec1": testca.P256, "pkcs1": testca.RSA2048} {
		_, c, k := s.leaf(name, kt)
		mustCommand(t, openssl, "pkey", "-in", k, "-traditional", "-out", s.at("old.key"))
		old := read(s.at("old.key"))
		if name == "sec1" {
			old = mustCommand(t, openssl, "ecparam", "-name", "prime256v1") + old // EC PARAMETERS
		}
		s.pem(name, read(c)+old)
		s.pem(name+"-first", old+read(c))
		s.stores[len(s.stores)-1].name = name // the same certificate
		sealed, c, k := s.leaf(name+"-sealed", kt)
		mustCommand(t, openssl, "pkcs8", "-topk8", "-in", k, "-passout", "pass:keysecret", "-out", s.at("sealed.key"))
		s.pem(sealed.Cert.Subject.CommonName, read(c)+read(s.at("sealed.key")))
	}
	config := writeFile(t, s.at("tlsd.yaml"), []byte(strings.Split(s.config(), "listeners:")[0]))
	for _, tier := range []string{"pkix", "pkixcached"} {
		d := start(t, "--config", config, "--keymanager", tier)
		for _, f := range s.stores {
			checkServed(t, d, f.name+".test", f.name)
		}
	}
	sealed := s.stores[len(s.stores)-1].path
	for _, tt := range []struct{ name, content, want string }{
		{"utf16", utf16LE(cert + key), "UTF-16"},
		{"text", "hello\n", "text without a PEM block"},
		{"sealed", read(sealed), "--key-password-file"},
	} {
		path := writeFile(t, s.at("bad-"+tt.name), []byte(tt.content))
		for _, typ := range []string{"auto", "pem"} {
			if out := mustNotStart(t, "--keystore", path, "--keystore-type", typ); !strings.Contains(out, path) || !strings.Contains(out, tt.want) {
				t.Errorf("%s as %s: %s", tt.name, typ, out)
			}
		}
	}
}

func utf16LE(text string) string {
	out := []byte{0xff, 0xfe}
	for _, c := range []byte(text) {
		out = append(out, c, 0)
	}
	return string(out)
}

// TestCaseK05_SeveralKeys: twelve, of which keytool has put in the last two; each
// is served, and they stand in the order of the file.
func TestCaseK05_SeveralKeys(t *testing.T) {
	t.Parallel()
	ca := rootOf(t, testca.RSA2048)
	var certs []*testca.Cert
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("n%d", 12-i))
		certs = append(certs, issue(t, ca, testca.Spec{Name: names[i], DNS: []string{names[i] + ".test"},
			Key: []testca.KeyType{testca.P256, testca.RSA2048}[i%2]}))
	}
	s, others := storeWith(t, certs[:10]...), storeWith(t, certs[10:]...)
	mustCommand(t, testca.Keytools(t)[0].Keytool(), "-importkeystore", "-noprompt", "-srckeystore", others.path, "-srcstorepass", "changeit",
		"-destkeystore", s.path, "-deststorepass", "changeit", "-deststoretype", "PKCS12")
	for _, tier := range tiers {
		d := start(t, append(s.args(), "--keymanager", tier)...)
		if tier != "sunx509" {
			for _, name := range names {
				checkServed(t, d, name+".test", name)
			}
		}
		if got := aliasesOf(d.awaitLines(len(names), `"msg":"found key"`)); !slices.Equal(got, names) {
			t.Errorf("%s: order %q, want %q", tier, got, names)
		}
	}
}

// aliasesOf returns the aliases in lines of the log, in their order.
func aliasesOf(lines []string) (aliases []string) {
	for _, line := range lines {
		if _, rest, ok := strings.Cut(line, `"alias":"`); ok {
			alias, _, _ := strings.Cut(rest, `"`)
			aliases = append(aliases, alias)
		}
	}
	return aliases
}

// TestCaseK13_WhatIsNoKeystore: it is said what each is, and a wrong label of a
// binary store does no harm.
func TestCaseK13_WhatIsNoKeystore(t *testing.T) {
	t.Parallel()
	keytool, dir := testca.Keytools(t)[0].Keytool(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := storeWith(t, issue(t, rootOf(t, testca.P256), testca.Spec{Name: "w"}))
	mustCommand(t, keytool, "-importkeystore", "-noprompt", "-srckeystore", s.path, "-srcstorepass", "changeit",
		"-destkeystore", at("keys.jks"), "-deststorepass", "changeit", "-deststoretype", "JKS")
	for _, typ := range []string{"PKCS12", "JKS"} {
		mustCommand(t, keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", s.ca, "-keystore", at("trust."+typ), "-storetype", typ, "-storepass", "changeit")
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.root.DER})
	for _, tier := range tiers {
		for path, typ := range map[string]string{at("keys.jks"): "pkcs12", s.path: "jks"} {
			d := start(t, "--keystore", path, "--keystore-type", typ, "--keystore-password-file", s.password, "--keymanager", tier)
			checkServed(t, d, "w.test", "w")
		}
		for _, tt := range []struct{ path, typ, want string }{
			{at("trust.PKCS12"), "pkcs12", "no key entry"},
			{at("trust.JKS"), "jks", "no key entry"},
			{writeFile(t, at("some.pem"), key), "pkcs12", "not pkcs12 but pem"},
			{dir, "pkcs12", "is a directory"},
			{at("missing"), "pkcs12", "no such file"},
		} {
			out := mustNotStart(t, "--keystore", tt.path, "--keystore-type", tt.typ, "--keystore-password-file", s.password, "--keymanager", tier)
			if !strings.Contains(out, tt.path) || !strings.Contains(out, tt.want) || strings.Contains(out, "wrong password") {
				t.Errorf("%s: %s", tier, out)
			}
		}
	}
}

// negativeSerial has openssl make a self-signed certificate whose serial number is
// -5, and returns the files of certificate and key.
func negativeSerial(t *testing.T, name string) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "c.crt"), filepath.Join(dir, "c.key")
	mustCommand(t, testca.Tool(t, "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-set_serial", "-5",
		"-subj", "/CN="+name, "-addext", "subjectAltName=DNS:w.test", "-keyout", key, "-out", cert)
	der, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(der)
	if _, err := x509.ParseCertificate(block.Bytes); err == nil {
		t.Fatal("crypto/x509 parses it after all")
	}
	return cert, key
}
