// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseS02_ExpiredAndFresh, for one name: the fresh one, whatever is asked for
// and whatever the order; sunx509 looks at no date.
func TestCaseS02_ExpiredAndFresh(t *testing.T) {
	t.Parallel()
	ca := rootOf(t, testca.P256)
	both := []*testca.Cert{issue(t, ca, expired(testca.Spec{Name: "expired"})), issue(t, ca, testca.Spec{Name: "fresh"})}
	for _, certs := range [][]*testca.Cert{both, reversed(both)} {
		s, first := storeWith(t, certs...), certs[0].Cert.Subject.CommonName
		for _, tier := range tiers {
			d, want := start(t, append(s.args(), "--keymanager", tier)...), "fresh"
			if tier == "sunx509" {
				want = first
			}
			for _, sni := range []string{"w.test", "other.test", ""} {
				checkServed(t, d, sni, want)
			}
		}
	}
}

// TestCaseS03_OnlyExpired is served all the same, and told of at the start with
// alias and date.
func TestCaseS03_OnlyExpired(t *testing.T) {
	t.Parallel()
	late := issue(t, rootOf(t, testca.P256), expired(testca.Spec{Name: "late"}))
	s := storeWith(t, late)
	for _, tier := range tiers {
		d := start(t, append(s.args(), "--keymanager", tier, "--debug", "keymanager")...)
		if n := d.awaitLines(1, `"level":"warn"`, `"alias":"late"`, "expired at "+late.Cert.NotAfter.UTC().Format(time.RFC3339)); len(n) != 1 {
			t.Errorf("%s: %d warnings at the start:\n%s", tier, len(n), d.log)
		}
		for range 3 {
			checkServed(t, d, "w.test", "late")
		}
		if tier != "sunx509" {
			d.awaitLog(`"class":"expired"`)
		}
	}
}

// chainOf returns the common names of the certificates that a client is sent.
func chainOf(t *testing.T, d *daemon, sni string) (names []string) {
	t.Helper()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c, err := d.handshake(&tls.Config{ServerName: sni, InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, cert := range c.ConnectionState().PeerCertificates {
			sent = append(sent, cert.Subject.CommonName)
		}
		c.Close()
		if names != nil && !slices.Equal(sent, names) {
			t.Errorf("%s are sent, and before %s", sent, names)
		}
		names = sent
	}
	return names
}

// TestCaseN04_MissingIntermediate: the leaf is sent alone, and one warning says
// what is missing; where another entry has it, it is sent.
func TestCaseN04_MissingIntermediate(t *testing.T) {
	t.Parallel()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	inter := root.Issue(t, testca.Spec{Name: "inter", IsCA: true})
	leaf, other := issue(t, inter, testca.Spec{Name: "leaf"}), issue(t, inter, testca.Spec{Name: "other", DNS: []string{"other.test"}})
	self := testca.SelfSigned(t, testca.Spec{Name: "self", DNS: []string{"w.test"}})
	of := func(c *testca.Cert, chain ...[]byte) testca.StoreEntry {
		return testca.StoreEntry{Alias: c.Cert.Subject.CommonName, Cert: c, Chain: chain}
	}
	for name, tt := range map[string]struct {
		entries  []testca.StoreEntry
		sent     []string
		warnings int
	}{
		"missing":       {[]testca.StoreEntry{of(leaf, leaf.DER, root.DER)}, []string{"leaf"}, 1},
		"self-signed":   {[]testca.StoreEntry{of(self, self.DER)}, []string{"self"}, 0},
		"another-alias": {[]testca.StoreEntry{of(leaf, leaf.DER), of(other, other.DER, inter.DER)}, []string{"leaf", "inter"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			testca.WritePKCS12(t, filepath.Join(dir, "s.p12"), "changeit", tt.entries...)
			s := store{path: filepath.Join(dir, "s.p12"), password: writeFile(t, filepath.Join(dir, "pass"), []byte("changeit"))}
			for _, tier := range tiers {
				d := start(t, append(s.args(), "--keymanager", tier)...)
				if got := chainOf(t, d, "w.test"); !slices.Equal(got, tt.sent) {
					t.Errorf("%s: %s are sent, want %s", tier, got, tt.sent)
				}
				warned := d.awaitLines(tt.warnings, `"level":"warn"`)
				if len(warned) != tt.warnings || len(warned) > 0 && len(linesWith(warned[0], `"alias":"leaf"`, `\"CN=inter\" is not in the keystore`)) != 1 {
					t.Errorf("%s: %d warnings, want %d:\n%s", tier, len(warned), tt.warnings, d.log)
				}
			}
		})
	}
}

// TestCaseN05_RootIncluded: it is sent as it is stored, to clients that have it
// and to clients that don't.
func TestCaseN05_RootIncluded(t *testing.T) {
	t.Parallel()
	openssl, root := testca.Tool(t, "openssl"), testca.NewRoot(t, testca.Spec{Name: "root"})
	inter := root.Issue(t, testca.Spec{Name: "inter", IsCA: true})
	leaf := issue(t, inter, testca.Spec{Name: "leaf"})
	dir := t.TempDir()
	s := store{path: filepath.Join(dir, "s.p12"), password: writeFile(t, filepath.Join(dir, "pass"), []byte("changeit"))}
	testca.WritePKCS12(t, s.path, "changeit", testca.StoreEntry{Alias: "a", Cert: leaf, Chain: [][]byte{leaf.DER, inter.DER, root.DER}})
	ours := writeFile(t, filepath.Join(dir, "root.pem"), root.CertPEM())
	others := writeFile(t, filepath.Join(dir, "others.pem"), testca.NewRoot(t, testca.Spec{Name: "root of others"}).CertPEM())
	for _, tier := range tiers {
		d := start(t, append(s.args(), "--keymanager", tier)...)
		if got := chainOf(t, d, "w.test"); !slices.Equal(got, []string{"leaf", "inter", "root"}) {
			t.Errorf("%s: %s are sent", tier, got)
		}
		for file, trusts := range map[string]bool{ours: true, others: false} {
			out, err := command(t, openssl, "s_client", "-connect", d.addr, "-servername", "w.test", "-no-CApath", "-no-CAstore", "-CAfile", file, "-verify_return_error", "-brief")
			if (err == nil) != trusts {
				t.Errorf("%s: %s: %v\n%s", tier, filepath.Base(file), err, out)
			}
		}
	}
}

// TestCaseN06_KeyOfAnother: such an entry is refused by name, at the start and in
// a reload, which never makes things worse.
func TestCaseN06_KeyOfAnother(t *testing.T) {
	t.Parallel()
	ca := rootOf(t, testca.P256)
	good := entry(issue(t, ca, testca.Spec{Name: "good"}))
	bad := entry(issue(t, ca, testca.Spec{Name: "bad", DNS: []string{"bad.test"}}))
	sound := []testca.StoreEntry{good, bad}
	bad.Key = testca.NewKey(t, testca.P256)
	write := func(path string, entries ...testca.StoreEntry) { testca.WritePKCS12(t, path, "changeit", entries...) }
	const why = "does not match its certificate"
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "s.p12")
			args := []string{"--keystore", path, "--keystore-password-file", writeFile(t, filepath.Join(dir, "pass"), []byte("changeit")), "--keymanager", tier}
			refused := func(args ...string) {
				t.Helper()
				if out := mustNotStart(t, args...); len(linesWith(out, why, path, `key "`)) != 1 {
					t.Errorf("%s", out)
				}
			}
			write(path, bad)
			refused(args...)
			for _, entries := range [][]testca.StoreEntry{{good, bad}, {bad, good}} {
				write(path, entries...)
				if tier == "sunx509" {
					refused(args...)
					continue
				}
				d := start(t, args...)
				for _, sni := range []string{"w.test", "bad.test", ""} {
					checkServed(t, d, sni, "good")
				}
				if said := d.awaitLines(1, `"level":"error"`); len(said) != 1 || len(linesWith(said[0], `"alias":"bad"`, why, path)) != 1 {
					t.Errorf("want one error:\n%s", d.log)
				}
			}
			write(path, sound...)
			d := start(t, args...)
			write(path, good, bad)
			d.cmd.Process.Signal(syscall.SIGHUP)
			d.awaitLog("keystore reload failed")
			checkServed(t, d, "w.test", "good")
			if tier != "sunx509" {
				checkServed(t, d, "bad.test", "bad")
			}
			if len(d.awaitLines(1, `"level":"error"`, "keystore reload failed", `\"bad\"`, why)) != 1 {
				t.Errorf("want one error:\n%s", d.log)
			}
		})
	}
	t.Run("pem", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "ks.pem")
		if err := os.WriteFile(path, slices.Concat(bad.Cert.CertPEM(), good.Cert.KeyPEM()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := mustNotStart(t, "--keystore", path); !strings.Contains(out, path) || !strings.Contains(out, why) {
			t.Errorf("%s", out)
		}
	})
}
