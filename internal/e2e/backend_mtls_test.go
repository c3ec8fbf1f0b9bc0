// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// mutual is a keystore with an entry for clients of tlsd and some for backends
// of tlsd, and what those backends are made of.
type mutual struct {
	store
	dir      string
	cas      map[string]*testca.Cert // who issued the entries for backends
	files    map[string]string       // the CAs' files
	server   *testca.Cert            // the backends' own
	crt, key string                  // its files
}

// newMutual has entries a-rsa and a-ec by CA a, and b-ec by CA b.
func newMutual(t *testing.T) mutual {
	t.Helper()
	a, b := testca.NewRoot(t, testca.Spec{Name: "CA a", Key: testca.RSA2048}), testca.NewRoot(t, testca.Spec{Name: "CA b"})
	m := mutual{dir: t.TempDir(), cas: map[string]*testca.Cert{"a": a, "b": b, "c": testca.NewRoot(t, testca.Spec{Name: "CA c"})}, files: map[string]string{}}
	as := func(ca *testca.Cert, name string, kt testca.KeyType) *testca.Cert {
		return ca.Issue(t, testca.Spec{Name: name, Key: kt, EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	}
	front := testca.NewRoot(t, testca.Spec{Name: "front CA"}).Issue(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	m.store = storeWith(t, front, as(b, "b-ec", testca.P256), as(a, "a-ec", testca.P256), as(a, "a-rsa", testca.RSA2048))
	for name, ca := range m.cas {
		m.files[name] = writeFile(t, filepath.Join(m.dir, name+".pem"), ca.CertPEM())
	}
	m.server = m.cas["c"].Issue(t, testca.Spec{Name: "backend.test", DNS: []string{"backend.test"}})
	m.crt, m.key = filepath.Join(m.dir, "backend.crt"), filepath.Join(m.dir, "backend.key")
	testca.WritePEM(t, m.crt, m.key, m.server)
	return m
}

// start runs tlsd in front of a backend that it shows a certificate.
func (m *mutual) start(t *testing.T, backend string) *daemon {
	t.Helper()
	return backendConfig(t, m.store, "backend: "+backend,
		fmt.Sprintf("backend_tls: {ca: %s, name: backend.test, client_certificate: true}", m.files["c"]))
}

// get asks for / by HTTP/1.0 and returns what comes back.
func get(t *testing.T, d *daemon, s store) string {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", d.addr, &tls.Config{RootCAs: s.root.Pool(), ServerName: "w.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.0\r\nHost: w.test\r\n\r\n")
	all, _ := io.ReadAll(c) // a backend that refuses breaks off
	return string(all)
}

// TestGoBackendAsksForCertificate: which entry a backend is shown follows the
// issuers that it accepts.
func TestGoBackendAsksForCertificate(t *testing.T) {
	m := newMutual(t)
	for _, scheme := range []string{"https", "tls"} {
		for ca, want := range map[string]string{"a": "client: a-", "b": "client: b-ec", "c": ""} {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				t.Run(fmt.Sprintf("%s-%s-%x", scheme, ca, version), func(t *testing.T) {
					l := listenOn(t, "tcp", "127.0.0.1:0")
					serveHTTP(t, l, &tls.Config{
						Certificates: []tls.Certificate{{Certificate: m.server.Chain(), PrivateKey: m.server.Key}},
						ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: m.cas[ca].Pool(), MinVersion: version, MaxVersion: version,
					}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						fmt.Fprintf(w, "client: %s", r.TLS.PeerCertificates[0].Subject.CommonName)
					}))
					got := get(t, m.start(t, scheme+"://"+l.Addr().String()), m.store)
					if want == "" && strings.Contains(got, "client: ") || !strings.Contains(got, want) {
						t.Errorf("no %q in %q", want, got)
					}
				})
			}
		}
	}
}

// TestOpenSSLBackendAsksForCertificate: by the issuers and the signature schemes
// that openssl accepts.
func TestOpenSSLBackendAsksForCertificate(t *testing.T) {
	m := newMutual(t)
	for _, tt := range []struct{ name, ca, schemes, want string }{
		{"issuer", "b", "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256", "b-ec"},
		{"rsa-only", "a", "RSA-PSS+SHA256:RSA+SHA256", "a-rsa"},
		{"ecdsa-first", "a", "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256", "a-ec"},
		{"rsa-first", "a", "RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA256", "a-rsa"},
		{"none-fits", "b", "RSA-PSS+SHA256:RSA+SHA256", ""},
	} {
		for _, version := range []string{"-tls1_2", "-tls1_3"} {
			for _, scheme := range []string{"https", "tls"} {
				t.Run(tt.name+version+"-"+scheme, func(t *testing.T) {
					addr := m.opensslServer(t, "-Verify", "1", "-verify_return_error", "-CAfile", m.files[tt.ca], "-client_sigalgs", tt.schemes, version)
					got := get(t, m.start(t, scheme+"://"+addr), m.store)
					named := strings.Contains(got, "CN = "+tt.want) || strings.Contains(got, "CN="+tt.want)
					if tt.want == "" && strings.Contains(got, "s_server") || tt.want != "" && !named {
						t.Errorf("want %q of\n%s", tt.want, got)
					}
				})
			}
		}
	}
}

// opensslServer runs openssl's server until the test ends, which answers with
// what it knows of its client.
func (m *mutual) opensslServer(t *testing.T, args ...string) string {
	t.Helper()
	addr := freeAddr(t)
	cmd := exec.Command(testca.Tool(t, "openssl"), append([]string{"s_server", "-accept", addr, "-cert", m.crt, "-key", m.key, "-www", "-quiet"}, args...)...)
	testca.StartGuarded(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		}
	}
	t.Fatal("openssl s_server does not listen")
	return ""
}
