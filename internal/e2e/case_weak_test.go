// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseN01_MD5BesideGood: the good one is served, and the other is rejected by
// name.
func TestCaseN01_MD5BesideGood(t *testing.T) {
	t.Parallel()
	ca := rootOf(t, testca.RSA2048)
	md5 := strings.Split(signedWithMD5(t, ca), ",")
	s := storeWith(t, issue(t, ca, testca.Spec{Name: "good", DNS: []string{"other.test"}, Key: testca.RSA2048}))
	dir := t.TempDir()
	weak, first := filepath.Join(dir, "weak.p12"), filepath.Join(dir, "both.p12")
	mustCommand(t, testca.Tool(t, "openssl"), "pkcs12", "-export", "-in", md5[0], "-inkey", md5[1], "-name", "weak", "-passout", "pass:changeit", "-out", weak)
	for _, from := range []string{weak, s.path} {
		mustCommand(t, testca.Keytools(t)[0].Keytool(), "-importkeystore", "-noprompt", "-srckeystore", from, "-srcstorepass", "changeit",
			"-destkeystore", first, "-deststorepass", "changeit", "-deststoretype", "PKCS12")
	}
	s.path = first
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			d := start(t, append(s.args(), "--keymanager", tier, "--debug", "keymanager")...)
			want := "good"
			if tier == "sunx509" {
				want = "weak"
			}
			for _, version := range []string{"-tls1_2", "-tls1_3"} {
				ask{version, "w.test", append([]string{version}, lax...), want}.of(t, d)
			}
			if tier != "sunx509" {
				d.awaitLines(1, `"msg":"candidate rejected"`, `"alias":"weak"`, `"rule":"`)
			}
		})
	}
}

// TestCaseN02_UselessKeyIsAWarning, one, that names it.
func TestCaseN02_UselessKeyIsAWarning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "512.key")
	mustCommand(t, testca.Tool(t, "openssl"), "genrsa", "-out", path, "512")
	ca := rootOf(t, testca.RSA2048)
	s := storeWith(t, issue(t, ca, testca.Spec{Name: "useless", Signer: readKey(t, path)}), issue(t, ca, testca.Spec{Name: "good", Key: testca.RSA2048}))
	for _, tier := range tiers {
		d := start(t, append(s.args(), "--keymanager", tier)...)
		for _, version := range []string{"-tls1_2", "-tls1_3"} {
			ask{tier + version, "w.test", []string{version}, "good"}.of(t, d)
		}
		if said := d.awaitLines(1, `"level":"warn"`); len(said) != 1 || len(linesWith(said[0], `"alias":"useless"`, "512")) != 1 {
			t.Errorf("%s: want one warning\n%s", tier, d.log)
		}
	}
}

// TestCaseS06_OneLine says why a client that can't use the only key was turned away.
func TestCaseS06_OneLine(t *testing.T) {
	t.Parallel()
	s := storeWith(t, issue(t, rootOf(t, testca.RSA2048), testca.Spec{Name: "odd", Key: testca.Ed25519}))
	for _, tier := range []string{"pkix", "pkixcached"} {
		for _, browser := range [][]string{browser12, browser13} {
			d := start(t, append(s.args(), "--keymanager", tier, "--debug", "keymanager")...)
			ask{tier + browser[0], "w.test", browser, "alert 40"}.of(t, d)
			if said := d.awaitLines(1, `"msg":"no credential"`); len(said) != 1 || !strings.Contains(said[0], `"level":"debug"`) || !strings.Contains(said[0], `"reason"`) {
				t.Errorf("%s: want one line at debug with a reason\n%s", tier, d.log)
			}
		}
	}
}
