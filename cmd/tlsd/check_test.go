// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

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
