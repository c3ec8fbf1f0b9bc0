// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// trust is a client CA in each format that a trust store has.
type trust struct {
	ca    *testca.Cert
	files map[string][]string // format: --client-ca and what else it takes
}

func newTrust(t *testing.T) trust {
	t.Helper()
	dir := t.TempDir()
	ca := testca.NewRoot(t, testca.Spec{Name: "client CA"})
	pem := writeFile(t, filepath.Join(dir, "clients.pem"), ca.CertPEM())
	password := writeFile(t, filepath.Join(dir, "trustpass"), []byte("trustit\n"))
	tr := trust{ca: ca, files: map[string][]string{"pem": {"--client-ca", pem}}}
	for _, jdk := range testca.Keytools(t) {
		for _, format := range []string{"PKCS12", "JKS"} {
			path := filepath.Join(dir, jdk.Name()+format)
			mustCommand(t, jdk.Keytool(), "-importcert", "-noprompt", "-alias", "ca", "-file", pem, "-keystore", path,
				"-storetype", format, "-storepass", "trustit")
			tr.files[jdk.Name()+"-"+format] = []string{"--client-ca", path, "--client-ca-password-file", password}
		}
	}
	return tr
}

// request asks for the page with openssl and returns "ok", "alert N" or what
// openssl printed. In TLS 1.3 a client's certificate is judged after its
// handshake, so only an answer says that it was let in.
func request(t *testing.T, d *daemon, version string, clientArgs ...string) string {
	t.Helper()
	args := append([]string{"s_client", "-connect", d.addr, "-servername", "w.test", version, "-ign_eof", "-quiet"}, clientArgs...)
	out, _ := commandWithInput(t, "GET / HTTP/1.1\r\nHost: w.test\r\nConnection: close\r\n\r\n", testca.Tool(t, "openssl"), args...)
	if _, rest, ok := strings.Cut(out, "SSL alert number "); ok {
		return "alert " + strings.Fields(rest)[0]
	}
	if strings.Contains(out, "200 OK") {
		return "ok"
	}
	return out
}

func TestClientCertificates(t *testing.T) {
	tr := newTrust(t)
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	client := func(name string, c *testca.Cert) []string {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "c.crt"), filepath.Join(dir, "c.key")
		testca.WritePEM(t, cert, key, c)
		return []string{"-cert", cert, "-key", key}
	}
	good := client("good", tr.ca.Issue(t, testca.Spec{Name: "alice", NoEKU: true}))
	stranger := client("stranger", testca.NewRoot(t, testca.Spec{Name: "other CA"}).Issue(t, testca.Spec{Name: "mallory", NoEKU: true}))
	expired := client("expired", tr.ca.Issue(t, testca.Spec{Name: "bob", NoEKU: true, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}))
	for format, trustArgs := range tr.files {
		t.Run("require-"+format, func(t *testing.T) {
			d := start(t, append(append(s.args(), "--client-auth", "require"), trustArgs...)...)
			for _, tc := range []struct {
				version string
				client  []string
				want    []string
			}{
				{"-tls1_3", good, []string{"ok"}},
				{"-tls1_2", good, []string{"ok"}},
				{"-tls1_3", nil, []string{"alert 116"}},
				{"-tls1_2", nil, []string{"alert 40", "alert 42"}},
				{"-tls1_3", stranger, []string{"alert 48", "alert 42"}},
				{"-tls1_2", stranger, []string{"alert 48", "alert 42"}},
				{"-tls1_3", expired, []string{"alert 45", "alert 42"}},
			} {
				if got := request(t, d, tc.version, tc.client...); !slices.Contains(tc.want, got) {
					t.Errorf("%s with %q: %s, want %v", tc.version, tc.client, got, tc.want)
				}
			}
		})
	}
	t.Run("optional", func(t *testing.T) {
		d := start(t, append(append(s.args(), "--client-auth", "optional"), tr.files["pem"]...)...)
		for _, tc := range []struct {
			client []string
			want   []string
		}{{nil, []string{"ok"}}, {good, []string{"ok"}}, {stranger, []string{"alert 48", "alert 42"}}} {
			if got := request(t, d, "-tls1_3", tc.client...); !slices.Contains(tc.want, got) {
				t.Errorf("%q: %s, want %v", tc.client, got, tc.want)
			}
		}
		out, _ := commandWithInput(t, "", testca.Tool(t, "openssl"), "s_client", "-connect", d.addr)
		if !strings.Contains(out, "Acceptable client certificate CA names") || !strings.Contains(out, "client CA") {
			t.Errorf("the client is not told which CAs are accepted:\n%s", out)
		}
	})
}

// TestJavaClientCertificates lets each JDK present its certificate from a
// PKCS#12 keystore.
func TestJavaClientCertificates(t *testing.T) {
	tr := newTrust(t)
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	d := start(t, append(append(s.args(), "--client-auth", "require"), tr.files["pem"]...)...)
	path := filepath.Join(t.TempDir(), "client.p12")
	testca.WritePKCS12(t, path, "changeit", testca.StoreEntry{Alias: "alice", Cert: tr.ca.Issue(t, testca.Spec{Name: "alice", NoEKU: true})})
	host, port, _ := net.SplitHostPort(d.addr)
	question := host + " " + port + " w.test TLSv1.3\n"
	for _, jdk := range testca.Keytools(t) {
		t.Run(jdk.Name(), func(t *testing.T) {
			with := runJava(t, jdk, question, s.ca, "-Dclient.keystore="+path, "-Dclient.password=changeit")
			if !strings.HasSuffix(with[0], "200 OK") {
				t.Errorf("with a certificate: %q", with)
			}
			if without := runJava(t, jdk, question, s.ca); !strings.HasPrefix(without[0], "error: ") {
				t.Errorf("without a certificate: %q", without)
			}
		})
	}
}
