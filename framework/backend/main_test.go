// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/internal/testca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a CA, a server certificate for localhost, and a client's through an
// intermediate.
type world struct {
	root, server, client *testca.Cert
}

func newWorld(t testing.TB) world {
	t.Helper()
	root := testca.NewRoot(t, testca.Spec{Name: "Test Root"})
	mid := root.Issue(t, testca.Spec{Name: "Test Intermediate", IsCA: true})
	return world{
		root:   root,
		server: root.Issue(t, testca.Spec{Name: "server", DNS: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}),
		client: mid.Issue(t, testca.Spec{Name: "alice", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}),
	}
}

func certificate(c *testca.Cert) tls.Certificate {
	return tls.Certificate{Certificate: c.Chain(), PrivateKey: c.Key, Leaf: c.Cert}
}

func (w world) serverTLS() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{certificate(w.server)},
		ClientAuth:   tls.VerifyClientCertIfGiven,
		ClientCAs:    w.root.Pool(),
	}
}

func (w world) httpTLS() *tls.Config {
	cfg := w.serverTLS()
	cfg.NextProtos = []string{"h2", "http/1.1"}
	return cfg
}

// clientTLS trusts w's CA, and has w's client certificate if asked to.
func (w world) clientTLS(withCert bool) *tls.Config {
	cfg := &tls.Config{RootCAs: w.root.Pool(), ServerName: "localhost"}
	if withCert {
		cfg.Certificates = []tls.Certificate{certificate(w.client)}
	}
	return cfg
}

// front serves h over TLS as tlsd does, and returns its URL.
func (w world) front(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS, s.EnableHTTP2 = w.httpTLS(), true
	s.Config.MaxHeaderBytes = MaxHeaderBytes
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// httpClient speaks HTTP/2 if h2, else HTTP/1.1, and never both.
func (w world) httpClient(t testing.TB, h2, withCert bool) *http.Client {
	t.Helper()
	var p http.Protocols
	p.SetHTTP1(!h2)
	p.SetHTTP2(h2)
	tr := &http.Transport{Protocols: &p, TLSClientConfig: w.clientTLS(withCert), DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// curl runs curl with w's CA and returns what it prints, and its error.
func (w world) curl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	testca.WritePEM(t, ca, key, w.root)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testca.Tool(t, "curl"), append([]string{"-sS", "--cacert", ca}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustCurl is curl that must succeed.
func (w world) mustCurl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := w.curl(t, args...)
	if err != nil {
		t.Fatalf("curl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// newProxy returns a proxy to target, closed when the test ends.
func newProxy(t testing.TB, target string, change func(*HTTPConfig)) *HTTP {
	t.Helper()
	cfg := HTTPConfig{Target: mustParse(t, target)}
	if change != nil {
		change(&cfg)
	}
	h, err := NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func mustParse(t testing.TB, rawURL string) Target {
	t.Helper()
	target, err := Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// plainBackend serves h without TLS and returns its URL.
func plainBackend(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// h2cBackend serves h by HTTP/2 without TLS only, and returns its host:port.
func h2cBackend(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// deadAddress returns an address that nobody listens at.
func deadAddress(t testing.TB) string {
	return testca.FreeAddr(t)
}

func observed() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.New(core), logs
}

// bothVersions runs f with a client of each HTTP version.
func bothVersions(t *testing.T, f func(t *testing.T, h2 bool)) {
	t.Run("http1", func(t *testing.T) { f(t, false) })
	t.Run("http2", func(t *testing.T) { f(t, true) })
}

// dialRaw opens a TLS connection that speaks HTTP/1.1, closed when the test
// ends.
func (w world) dialRaw(t testing.TB, url string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), w.clientTLS(false))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	t.Cleanup(func() { conn.Close() })
	return conn
}

func keys(h http.Header) []string { return slices.Sorted(maps.Keys(h)) }
