// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseK05_EachOfTwelveUnderSunX509: it looks at no name, so that an alias picks
// each, and without one the first that fits the client is served.
func TestCaseK05_EachOfTwelveUnderSunX509(t *testing.T) {
	t.Parallel()
	ca := rootOf(t, testca.P256)
	var certs []*testca.Cert
	listeners := "keymanager: sunx509\nlisteners:\n"
	var addrs []string
	for i := range 12 {
		certs = append(certs, issue(t, ca, testca.Spec{Name: fmt.Sprint("n", 12-i), Key: []testca.KeyType{testca.P256, testca.RSA2048}[i%2]}))
		addrs = append(addrs, freeAddr(t))
		listeners += fmt.Sprintf("  - {listen: %q, backend: \"builtin:hello\", alias: n%d}\n", addrs[i], 12-i)
	}
	s := storeWith(t, certs...)
	config := fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\n%s", s.path, s.password, listeners)
	d := startWith(t, options{addr: addrs[0], args: []string{"--config", writeFile(t, filepath.Join(t.TempDir(), "tlsd.yaml"), []byte(config))}})
	for i, addr := range addrs {
		checkServed(t, &daemon{t: t, addr: addr, log: d.log}, "w.test", fmt.Sprint("n", 12-i))
	}
	plain := start(t, append(s.args(), "--keymanager", "sunx509")...)
	ask{"ecdsa", "w.test", ecSuites12, "n12"}.of(t, plain)
	ask{"rsa", "w.test", rsaSuites12, "n11"}.of(t, plain)
}

// TestCaseK14_UnderSunX509: marks, line ends and text in a PEM file.
func TestCaseK14_UnderSunX509(t *testing.T) {
	t.Parallel()
	c := issue(t, rootOf(t, testca.P256), testca.Spec{Name: "w"})
	cert, key := string(c.CertPEM()), string(c.KeyPEM())
	for name, content := range map[string]string{
		"bom":       "\ufeff" + cert + key,
		"crlf":      strings.ReplaceAll("\ufeff"+key+cert, "\n", "\r\n"),
		"latin1":    "Gr\xfc\xdfe\n" + cert + "Schl\xfcssel:\n" + key + "\xe4\n",
		"key-first": key + cert,
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "ks.pem"), []byte(content))
			checkServed(t, start(t, "--keystore", path, "--keymanager", "sunx509"), "w.test", "w")
		})
	}
}

// TestCaseP08_WrongPassword is in no text, whichever way it came.
func TestCaseP08_WrongPassword(t *testing.T) {
	const wrong = "Wr0ng-0815"
	s := storeWith(t, issue(t, rootOf(t, testca.P256), testca.Spec{Name: "w"}))
	file := writeFile(t, filepath.Join(t.TempDir(), "wrong"), []byte(wrong+"\n"))
	for name, args := range map[string][]string{
		"file":        {"--keystore", s.path, "--keystore-password-file", file},
		"property":    {"-Djavax.net.ssl.keyStore=" + s.path, "-Djavax.net.ssl.keyStorePassword=" + wrong},
		"environment": {"--keystore", s.path},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "environment" {
				t.Setenv("TLSD_KEYSTORE_PASSWORD", wrong)
			}
			out, err := command(t, bin("tlsd"), append(args, "--listen", freeAddr(t), "--log-level", "debug")...)
			if err == nil || !strings.Contains(out, s.path) || strings.Contains(out, wrong) || strings.Contains(out, "PRIVATE KEY") {
				t.Errorf("%v\n%s", err, strings.ReplaceAll(out, wrong, "<the password>"))
			}
		})
	}
}
