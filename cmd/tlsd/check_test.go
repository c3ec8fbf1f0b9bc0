// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCheckNotesOpenFiles: which files with keys and passwords everybody may read, as
// far as the directories above let them.
func TestCheckNotesOpenFiles(t *testing.T) {
	dir, err := os.MkdirTemp("", "open") // everybody may enter it, unlike those of go test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	leaf := testca.NewRoot(t, testca.Spec{Name: "root"}).Issue(t, testca.Spec{Name: "web", DNS: []string{"web.test"}})
	at := func(name string) string { return filepath.Join(dir, name) }
	testca.WritePEM(t, at("tls.crt"), at("tls.key"), leaf)
	testca.WritePKCS12(t, at("s.p12"), "changeit", testca.StoreEntry{Alias: "web", Cert: leaf})
	if err := os.WriteFile(at("pass"), []byte("changeit"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		open []string // files that everybody may read
		dir  os.FileMode
		want []string // that are named
	}{
		"none":     {nil, 0o755, nil},
		"store":    {[]string{"s.p12", "tls.crt"}, 0o755, []string{"s.p12"}},
		"password": {[]string{"pass"}, 0o755, []string{"pass"}},
		"key":      {[]string{"tls.crt", "tls.key"}, 0o755, []string{"tls.crt", "tls.key"}},
		"closed":   {[]string{"s.p12", "pass", "tls.crt", "tls.key"}, 0o750, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range []string{"s.p12", "pass", "tls.crt", "tls.key"} {
				mode := os.FileMode(0o640)
				if slices.Contains(tc.open, f) {
					mode = 0o644
				}
				if err := os.Chmod(at(f), mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, tc.dir); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if code := run([]string{"check", "--keystore", at("s.p12"), "--keystore", at("tls.crt") + "," + at("tls.key"), "--keystore-password-file", at("pass")}, &out, &errs); code != exitOK {
				t.Fatalf("exit status %d\n%s%s", code, &out, &errs)
			}
			var named []string
			for _, m := range regexp.MustCompile(`note: everybody may read "([^"]+)", .* run chmod 600`).FindAllStringSubmatch(out.String(), -1) {
				named = append(named, filepath.Base(m[1]))
			}
			if !slices.Equal(named, tc.want) {
				t.Errorf("named %q, want %q", named, tc.want)
			}
		})
	}
}

// TestCheckJudgesChains: all certificates that clients are shown count, for check as
// for keystore check, and what the key manager warns of is noted.
func TestCheckJudgesChains(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	late := root.Issue(t, testca.Spec{Name: "late", IsCA: true, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(0, 0, -2)})
	good := root.Issue(t, testca.Spec{Name: "good", IsCA: true})
	under := func(name string, ca *testca.Cert, chain bool) string {
		leaf := ca.Issue(t, testca.Spec{Name: name, DNS: []string{name + ".test"}})
		pem := filepath.Join(t.TempDir(), name+".pem")
		certs := leaf.ChainPEM()
		if !chain {
			certs = leaf.CertPEM()
		}
		if err := os.WriteFile(pem, append(leaf.KeyPEM(), certs...), 0o600); err != nil {
			t.Fatal(err)
		}
		return pem
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"expired_intermediate": {
			[]string{"check", "--keystore", under("web", late, true)}, exitMachine,
			`problem: keystore "*", alias "1": certificate "CN=late" expired on `,
		},
		"the_same_of_the_file": {
			[]string{"keystore", "check", under("web", late, true)}, exitMachine,
			`problem: 1: certificate "CN=late" expired on `,
		},
		"no_intermediate": {
			[]string{"check", "--keystore", under("web", good, true), "--keystore", under("alone", good, false)}, exitOK,
			`note: alias "1": chain incomplete: ends before the intermediate certificate "CN=good", which stands in another entry's; add it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(tc.args, &out, &errs); code != tc.code {
				t.Errorf("exit status %d, want %d", code, tc.code)
			}
			before, after, _ := strings.Cut(tc.want, "*")
			if !strings.Contains(out.String(), "\n"+before) || !strings.Contains(out.String(), after) || errs.Len() > 0 {
				t.Errorf("no %q in\n%s%s", tc.want, &out, &errs)
			}
		})
	}
}
