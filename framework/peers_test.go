// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

func keyTypes() []testca.KeyType {
	return []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519}
}

// rootFile writes the root's certificate for tools.
func rootFile(t testing.TB, root *testca.Cert) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(path, root.CertPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tool runs a peer with nothing on its standard input and returns all that it
// prints. That it fails is for the caller to see.
func tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, testca.Tool(t, name), args...)
	out, _ := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s does not end:\n%s", name, out)
	}
	return string(out)
}

// TestOpenSSLAndCurlAreServed has both ask for the built-in page, by each
// version and key type, with keys in a child.
func TestOpenSSLAndCurlAreServed(t *testing.T) {
	for _, kt := range keyTypes() {
		t.Run(string(kt), func(t *testing.T) {
			k, root := openTier(t, "pkixcached", kt)
			s := serveKeys(t, Config{Listeners: []Listener{{}}}, k)
			ca := rootFile(t, root)
			for _, v := range []string{"-tls1_2", "-tls1_3"} {
				out := tool(t, "openssl", "s_client", v, "-connect", s.addr(), "-servername", "a.test", "-CAfile", ca, "-verify_return_error", "-verify_hostname", "a.test")
				if !strings.Contains(out, "Verify return code: 0 (ok)") {
					t.Errorf("openssl %s:\n%s", v, out)
				}
			}
			_, port, _ := strings.Cut(s.addr(), ":")
			for _, http := range []string{"--http1.1", "--http2"} {
				out := tool(t, "curl", "-sS", http, "--cacert", ca, "--resolve", "a.test:"+port+":127.0.0.1",
					"-o", os.DevNull, "-w", "%{http_version} %{http_code}", "https://a.test:"+port)
				if want := map[string]string{"--http1.1": "1.1 200", "--http2": "2 200"}[http]; out != want {
					t.Errorf("curl %s: %q, want %q", http, out, want)
				}
			}
		})
	}
}

// TestOpenSSLResumes by tickets in both versions.
func TestOpenSSLResumes(t *testing.T) {
	k, root := openTier(t, "pkixcached", testca.P256)
	s := serveKeys(t, Config{Listeners: []Listener{{}}}, k)
	ca := rootFile(t, root)
	for _, v := range []string{"-tls1_2", "-tls1_3"} {
		session := filepath.Join(t.TempDir(), "session")
		args := []string{"s_client", v, "-connect", s.addr(), "-servername", "a.test", "-CAfile", ca}
		// With TLS 1.3 the ticket comes after the handshake, so that there has
		// to be an answer to wait for.
		first := asking(t, append(args, "-sess_out", session, "-ign_eof")...)
		second := asking(t, append(args, "-sess_in", session, "-ign_eof")...)
		if !strings.Contains(first, "New, ") || !strings.Contains(second, "Reused, ") {
			t.Errorf("openssl %s:\n%s\n%s", v, first, second)
		}
	}
}

// asking runs openssl, which is to succeed, with an HTTP request to send.
func asking(t testing.TB, args ...string) string {
	t.Helper()
	out, err := tell(t, args...)
	if err != nil {
		t.Errorf("openssl: %v\n%s", err, out)
	}
	return out
}

// tell runs openssl with an HTTP request to send and returns all that it prints.
func tell(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, testca.Tool(t, "openssl"), args...)
	cmd.Stdin = strings.NewReader("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// TestOpenSSLSeesRightAlert: what a peer that can't be served is told.
func TestOpenSSLSeesRightAlert(t *testing.T) {
	k, _ := openTier(t, "pkixcached", testca.P256)
	s := serveKeys(t, Config{Listeners: []Listener{{}, {MinVersion: tls.VersionTLS13}}}, k)
	web, modern := s.Addrs()[0].String(), s.Addrs()[1].String()
	for _, tt := range []struct {
		name  string
		alert string
		args  []string
	}{
		{"no-credential-tls1.2", "alert number 40", []string{"-connect", web, "-tls1_2", "-sigalgs", "RSA-PSS+SHA256"}},
		{"no-credential-tls1.3", "alert number 40", []string{"-connect", web, "-tls1_3", "-sigalgs", "RSA-PSS+SHA256"}},
		{"no-credential-retry", "alert number 40", []string{"-connect", web, "-tls1_3", "-groups", "X448:X25519", "-sigalgs", "RSA-PSS+SHA256"}},
		{"rsa-suites-only", "alert number 40", []string{"-connect", web, "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"}},
		{"unknown-alpn", "alert number 120", []string{"-connect", web, "-alpn", "foo"}},
		{"old-version", "alert number 70", []string{"-connect", modern, "-tls1_2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := tool(t, "openssl", append([]string{"s_client"}, tt.args...)...)
			if !strings.Contains(out, tt.alert) {
				t.Errorf("want %s:\n%s", tt.alert, out)
			}
		})
	}
}
