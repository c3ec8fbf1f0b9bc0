// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// entry is a keystore entry whose alias is the subject's common name.
func entry(c *testca.Cert) testca.StoreEntry {
	return testca.StoreEntry{Alias: c.Cert.Subject.CommonName, Cert: c}
}

// storeWith writes a PKCS#12 file with the certificates in that order.
func storeWith(t *testing.T, certs ...*testca.Cert) store {
	t.Helper()
	var entries []testca.StoreEntry
	for _, c := range certs {
		entries = append(entries, entry(c))
	}
	dir := t.TempDir()
	s := store{path: filepath.Join(dir, "server.p12"), root: certs[0].Root()}
	testca.WritePKCS12(t, s.path, "changeit", entries...)
	s.password = writeFile(t, filepath.Join(dir, "pass"), []byte("changeit\n"))
	s.ca = writeFile(t, filepath.Join(dir, "ca.pem"), s.root.CertPEM())
	return s
}

// reversed returns the certificates in the other order.
func reversed(certs []*testca.Cert) []*testca.Cert {
	var other []*testca.Cert
	for _, c := range certs {
		other = append([]*testca.Cert{c}, other...)
	}
	return other
}

// ask is a client and what it gets: the common name of the certificate, or
// "alert N".
type ask struct {
	name string // of the case
	sni  string // empty: none
	args []string
	want string
}

func (a ask) of(t *testing.T, d *daemon) {
	t.Helper()
	t.Run(a.name, func(t *testing.T) {
		if got := servedTo(t, d, a.sni, a.args...); got != a.want {
			t.Errorf("%s, want %s; the client was %v", got, a.want, a.args)
		}
	})
}

// servedTo has openssl connect and tells what it was served with.
func servedTo(t *testing.T, d *daemon, sni string, args ...string) string {
	t.Helper()
	name := []string{"-servername", sni}
	if sni == "" {
		name = []string{"-noservername"}
	}
	out, _ := command(t, testca.Tool(t, "openssl"), append(append([]string{"s_client", "-connect", d.addr}, name...), args...)...)
	if m := regexp.MustCompile(`SSL alert number (\d+)`).FindStringSubmatch(out); m != nil {
		return "alert " + m[1]
	}
	if m := regexp.MustCompile(`(?m)^subject=.*?CN ?= ?(\S+)$`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return out
}

// checking runs f under each tier that looks at certificates.
func checking(t *testing.T, s store, args []string, f func(t *testing.T, d *daemon)) {
	t.Helper()
	for _, tier := range []string{"pkix", "pkixcached"} {
		t.Run(tier, func(t *testing.T) {
			f(t, start(t, append(append(s.args(), "--keymanager", tier), args...)...))
		})
	}
}

// Clients of limited ability, as options of openssl s_client.
var (
	anyClient    = []string{}
	rsaSuites12  = []string{"-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"}
	ecSuites12   = []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"}
	rsaSchemes13 = []string{"-tls1_3", "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256"}
	ecSchemes13  = []string{"-tls1_3", "-sigalgs", "ECDSA+SHA256"}
	browser12    = []string{"-tls1_2", "-sigalgs", "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256"}
	browser13    = []string{"-tls1_3", "-sigalgs", "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256"}
	noPSS12      = []string{"-tls1_2", "-sigalgs", "RSA+SHA256"}
	noPSS13      = []string{"-tls1_3", "-sigalgs", "RSA+SHA256"}
	noP521       = []string{"-tls1_2", "-groups", "P-256:P-384"}
	sha1Only     = []string{"-tls1_2", "-cipher", "DEFAULT:@SECLEVEL=0", "-sigalgs", "RSA+SHA1:ECDSA+SHA1"}
	withSHA1     = []string{"-cipher", "DEFAULT:@SECLEVEL=0", "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256:RSA+SHA1"}
	lax          = []string{"-cipher", "DEFAULT:@SECLEVEL=0"}
)
