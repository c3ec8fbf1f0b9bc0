// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseK10_KeyPassword: of a JKS file whose key has a password of its own.
func TestCaseK10_KeyPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jks, own := filepath.Join(dir, "own.jks"), writeFile(t, filepath.Join(dir, "own.pass"), []byte("keysecret\n"))
	s := storeWith(t, issue(t, rootOf(t, testca.P256), testca.Spec{Name: "srv"}))
	mustCommand(t, testca.Keytools(t)[0].Keytool(), "-importkeystore", "-noprompt", "-srckeystore", s.path, "-srcstorepass", "changeit", "-srcalias", "srv",
		"-destkeystore", jks, "-deststorepass", "changeit", "-deststoretype", "JKS", "-destkeypass", "keysecret", "-destalias", "Srv")
	each := writeFile(t, filepath.Join(dir, "each.yaml"), fmt.Appendf(nil,
		"keystores: [{path: %s, password_file: %s, key_passwords: [{alias: SRV, file: %s}]}]\n", jks, s.password, own))
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			args := []string{"--keystore", jks, "--keystore-password-file", s.password, "--keymanager", tier}
			if out := mustNotStart(t, args...); !strings.Contains(out, `"srv"`) || !strings.Contains(out, "wrong key password") || strings.Contains(out, "keysecret") {
				t.Errorf("without its password: %s", out)
			}
			checkServed(t, start(t, append(args, "--key-password-file", own, "--alias", "sRV")...), "w.test", "srv")
			checkServed(t, start(t, "--config", each, "--keymanager", tier), "w.test", "srv")
		})
	}
}

// TestCaseK11_Alias of a listener, in any case and for any server name.
func TestCaseK11_Alias(t *testing.T) {
	t.Parallel()
	ca := rootOf(t, testca.P256)
	s := storeWith(t, issue(t, ca, testca.Spec{Name: "a", DNS: []string{"a.test"}}), issue(t, ca, testca.Spec{Name: "b", DNS: []string{"b.test"}}))
	for _, tier := range tiers {
		for _, alias := range []string{"b", "B"} {
			d := start(t, append(s.args(), "--keymanager", tier, "--alias", alias)...)
			for _, sni := range []string{"a.test", "b.test", "other.test", ""} {
				checkServed(t, d, sni, "b")
			}
		}
		if out := mustNotStart(t, append(s.args(), "--keymanager", tier, "--alias", "nope")...); !strings.Contains(out, `no entry with alias "nope"; there are: "a", "b"`) {
			t.Errorf("%s: %s", tier, out)
		}
	}
}

// TestCaseK15_RSASSAPSS: a key that TLS can't use here hides no good one.
func TestCaseK15_RSASSAPSS(t *testing.T) {
	t.Parallel()
	openssl, dir := testca.Tool(t, "openssl"), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mustCommand(t, openssl, "req", "-x509", "-newkey", "rsa-pss", "-pkeyopt", "rsa_keygen_bits:2048", "-nodes", "-subj", "/CN=pss",
		"-addext", "subjectAltName=DNS:w.test", "-keyout", at("pss.key"), "-out", at("pss.crt"))
	skipped(t, at("pss.crt"), at("pss.key"), "RSASSA-PSS")
}

// TestCaseK16_NegativeSerial of an entry's certificate, which is skipped, and of a
// client CA, beside which the others count.
func TestCaseK16_NegativeSerial(t *testing.T) {
	t.Parallel()
	cert, key := negativeSerial(t, "odd")
	skipped(t, cert, key, "negative serial number")
	odd, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	ca := testca.NewRoot(t, testca.Spec{Name: "clients"})
	alice := s.as(ca.Issue(t, testca.Spec{Name: "alice", NoEKU: true}))
	for i, content := range []string{string(odd) + string(ca.CertPEM()), string(ca.CertPEM()) + string(odd)} {
		d := configured(t, s, fmt.Sprintf("listeners: [{client_auth: require, client_ca: %s}]",
			writeFile(t, filepath.Join(t.TempDir(), "clients.pem"), []byte(content))))
		c, err := d.handshake(alice)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET / HTTP/1.0\r\nHost: w.test\r\n\r\n")
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("a client of the other CA: %v", err)
		}
		c.Close()
		if want := fmt.Sprintf(`number %d, \"CN=odd\": the certificate has a negative serial number`, i+1); len(d.awaitLines(1, want)) != 1 || d.count(`"level":"warn"`) != 1 {
			t.Errorf("want one warning, with %s:\n%s", want, d.log)
		}
	}
}

// skipped checks what becomes of an entry that no tier can use: beside a good one,
// in either order, it is one warning; alone it is the reason not to start.
func skipped(t *testing.T, cert, key, why string) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	pass := writeFile(t, at("pass"), []byte("changeit"))
	openssl, keytool := testca.Tool(t, "openssl"), testca.Keytools(t)[0].Keytool()
	good := storeWith(t, issue(t, rootOf(t, testca.P256), testca.Spec{Name: "good"})).path
	mustCommand(t, openssl, "pkcs12", "-export", "-inkey", key, "-in", cert, "-name", "useless", "-passout", "pass:changeit", "-out", at("alone.p12"))
	both := []string{at("first.p12"), at("second.p12")}
	for i, order := range [][]string{{at("alone.p12"), good}, {good, at("alone.p12")}} {
		for _, from := range order {
			mustCommand(t, keytool, "-importkeystore", "-noprompt", "-srckeystore", from, "-srcstorepass", "changeit",
				"-destkeystore", both[i], "-deststorepass", "changeit", "-deststoretype", "PKCS12")
		}
	}
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			for _, path := range both {
				d := start(t, "--keystore", path, "--keystore-password-file", pass, "--keymanager", tier)
				checkServed(t, d, "w.test", "good")
				warned := d.awaitLines(1, `"level":"warn"`)
				if len(warned) != 1 || !strings.Contains(warned[0], `"alias":"useless"`) || !strings.Contains(warned[0], why) {
					t.Errorf("want one warning, of %s:\n%s", why, d.log)
				}
			}
			out := mustNotStart(t, "--keystore", at("alone.p12"), "--keystore-password-file", pass, "--keymanager", tier)
			for _, want := range []string{at("alone.p12"), `"useless"`, why} {
				if !strings.Contains(out, want) {
					t.Errorf("alone: no %q in %s", want, out)
				}
			}
		})
	}
}

// linesWith returns the lines that hold each of texts.
func linesWith(log string, texts ...string) (found []string) {
	for line := range strings.Lines(log) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

// TestCaseK17_PasswordFromEnvironment: one line end at its end does not count, all
// else does; and none stands in a configuration.
func TestCaseK17_PasswordFromEnvironment(t *testing.T) {
	t.Parallel()
	c := issue(t, rootOf(t, testca.P256), testca.Spec{Name: "w"})
	for name, tt := range map[string]struct{ password, variable string }{
		"line-end":  {"changeit", "changeit\n"},
		"crlf":      {"changeit", "changeit\r\n"},
		"dollar":    {"a$HOME ${HOME} #b", "a$HOME ${HOME} #b"},
		"blanks":    {" changeit ", " changeit "},
		"two-lines": {"changeit\n", "changeit\n\n"},
		"empty":     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "server.p12")
			testca.WritePKCS12(t, path, tt.password, entry(c))
			d := startWith(t, options{env: []string{"TLSD_KEYSTORE_PASSWORD=" + tt.variable}, args: []string{"--keystore", path}})
			checkServed(t, d, "w.test", "w")
		})
	}
	for _, line := range []string{"keystores: [{path: a.p12, password: S3cr3t-4711}]\n", "password: S3cr3t-4711\n"} {
		out := mustNotStart(t, "--config", writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), []byte(line)))
		for _, want := range []string{"password: unknown key", "password_file", "TLSD_KEYSTORE_PASSWORD"} {
			if !strings.Contains(out, want) || strings.Contains(out, "S3cr3t") {
				t.Errorf("want %q in %s", want, out)
			}
		}
	}
}
