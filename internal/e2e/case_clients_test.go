// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseM05_AlertOfEachClient: in both versions of TLS, what openssl is told by a
// listener that asks for certificates and by one that demands them.
func TestCaseM05_AlertOfEachClient(t *testing.T) {
	t.Parallel()
	ca, dir := testca.NewRoot(t, testca.Spec{Name: "A"}), t.TempDir()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	trusted := writeFile(t, filepath.Join(dir, "clients.pem"), ca.CertPEM())
	with := func(name string, c *testca.Cert) []string {
		cert, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		testca.WritePEM(t, cert, key, c)
		return []string{"-cert", cert, "-key", key}
	}
	past := time.Now().Add(-time.Hour)
	clients := []struct {
		name          string
		args          []string
		answers       [2]string // of TLS 1.2 and 1.3, where a certificate is demanded
		refusedAnyway bool      // where none is demanded too
	}{
		{"no-eku", with("no-eku", ca.Issue(t, testca.Spec{Name: "x", NoEKU: true})), [2]string{"ok", "ok"}, false},
		{"server-auth", with("server-auth", ca.Issue(t, testca.Spec{Name: "x"})), [2]string{"alert 42", "alert 42"}, true},
		{"expired", with("expired", ca.Issue(t, testca.Spec{Name: "x", NoEKU: true, NotBefore: past.Add(-time.Hour), NotAfter: past})), [2]string{"alert 45", "alert 45"}, true},
		{"self-signed", with("self-signed", testca.SelfSigned(t, testca.Spec{Name: "x", NoEKU: true})), [2]string{"alert 48", "alert 48"}, true},
		{"none", nil, [2]string{"alert 40", "alert 116"}, false},
	}
	for mode, demanded := range map[string]bool{"optional": false, "require": true} {
		d := start(t, append(s.args(), "--client-auth", mode, "--client-ca", trusted)...)
		for i, version := range []string{"-tls1_2", "-tls1_3"} {
			for _, c := range clients {
				want := "ok"
				if demanded || c.refusedAnyway {
					want = c.answers[i]
				}
				if got := request(t, d, version, c.args...); got != want {
					t.Errorf("%s, %s, %s: %s, want %s", mode, version, c.name, got, want)
				}
			}
		}
	}
}
