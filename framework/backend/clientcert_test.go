// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bufio"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/internal/testca"
)

func TestClientFieldsOfRFC9440(t *testing.T) {
	w := newWorld(t)
	backend := plainBackend(t, func(rw http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Client-Cert", "Client-Cert-Chain", "X-Client-Subject"} {
			fmt.Fprintln(rw, strings.Join(r.Header[name], "|"))
		}
	})
	front := w.front(t, newProxy(t, backend, nil))
	b64 := func(c *testca.Cert) string { return ":" + base64.StdEncoding.EncodeToString(c.DER) + ":" }
	with := b64(w.client) + "\n" + b64(w.client.Issuer) + ", " + b64(w.root) + "\nCN=alice\n"
	bothVersions(t, func(t *testing.T, h2 bool) {
		for withCert, want := range map[bool]string{true: with, false: "\n\n\n"} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", front, nil)
			req.Header.Set("Client-Cert", "forged")
			req.Header.Set("X_Client_Subject", "forged")
			res, err := w.httpClient(t, h2, withCert).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("with certificate %t: %s", withCert, diff)
			}
		}
	})
}

func TestEmptyNameIsNotSent(t *testing.T) {
	w := newWorld(t)
	c, err := newClientFields(ClientHeaders{Subject: "Who"})
	if err != nil {
		t.Fatal(err)
	}
	got := http.Header{}
	c.set(got, []*x509.Certificate{w.client.Cert, w.root.Cert})
	if diff := cmp.Diff(http.Header{"Who": {"CN=alice"}}, got); diff != "" {
		t.Error(diff)
	}
}

// startContainer starts a Tomcat on a JDK and returns its URL.
func startContainer(t *testing.T, jdk testca.JDK) string {
	t.Helper()
	jars, _ := filepath.Glob("/usr/share/java/tomcat9-*.jar")
	if len(jars) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no Tomcat; make deps installs libtomcat9-java")
		}
		t.Skip("no Tomcat (Debian: libtomcat9-java)")
	}
	cmd := exec.Command(jdk.Java(), "-Djava.io.tmpdir="+t.TempDir(), "-cp", strings.Join(jars, ":"), filepath.Join("testdata", "Container.java"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	var port int
	if _, err := fmt.Fscanf(bufio.NewReader(out), "port %d\n", &port); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// TestServletContainerReadsClientCertificate has Tomcat's SSLValve and, for the
// other formats, the JDK's own parsers read what the proxy sends.
func TestServletContainerReadsClientCertificate(t *testing.T) {
	for _, jdk := range testca.Keytools(t) {
		t.Run(jdk.Name(), func(t *testing.T) { testContainer(t, startContainer(t, jdk)) })
	}
}

func testContainer(t *testing.T, container string) {
	w := newWorld(t)
	front := w.front(t, newProxy(t, container, nil))
	if got, want := w.askAs(t, front, false, http.Header{"X-Forwarded-Port": {"1"}}), front+"/ from 127.0.0.1, secure: true\n"; got != want {
		t.Errorf("RemoteIpValve made %q, want %q", got, want)
	}
	w.client = w.root.Issue(t, testca.Spec{Name: "Zoë \"von\", O=Bank\r\nX-Admin: 1", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	sum := sha256.Sum256(w.client.DER)
	fingerprint := hex.EncodeToString(sum[:])
	tests := []struct {
		name  string
		names ClientHeaders
		valve bool
	}{
		{"default", DefaultClientHeaders(), false},
		{"der", ClientHeaders{Cert: "X-Der", Subject: "X-Dn", Format: FormatDERBase64}, false},
		{"sslvalve", ClientHeaders{Cert: "ssl_client_cert", Subject: "ssl_client_s_dn", Format: FormatPEMSpaces}, true},
		{"sslvalve-escaped", ClientHeaders{Cert: "ssl_client_escaped_cert", Subject: "X-Dn", Format: FormatPEMURLEncoded}, true},
		{"keycloak-nginx", ClientHeaders{Cert: "ssl-client-cert", Subject: "X-Dn", Format: FormatPEMURLEncoded}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			front := w.front(t, newProxy(t, container, func(c *HTTPConfig) { c.ClientHeaders = tt.names }))
			query := "/?" + url.Values{"cert": {tt.names.Cert}, "subject": {tt.names.Subject}, "format": {tt.names.Format}}.Encode()
			want := "valve none\ncert " + fingerprint + "\nsubject same\n"
			if tt.valve {
				want = strings.Replace(want, "none", fingerprint, 1)
			}
			if diff := cmp.Diff(want, w.askAs(t, front+query, true, nil)); diff != "" {
				t.Error(diff)
			}
			forged := http.Header{"ssl_client_escaped_cert": {pemEscaped(w.client.DER)}, "SSL_CLIENT_CERT": {pemSpaces(w.client.DER)}}
			if diff := cmp.Diff("valve none\ncert none\nsubject none\n", w.askAs(t, front+query, false, forged)); diff != "" {
				t.Errorf("forged: %s", diff)
			}
			if got := w.askAs(t, container+query, false, forged); !strings.HasPrefix(got, "valve "+fingerprint) {
				t.Errorf("without the proxy the forgery does not work, so that the test above proves nothing: %s", got)
			}
		})
	}
}

func (w world) askAs(t *testing.T, url string, withCert bool, header http.Header) string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	for name, values := range header {
		req.Header[name] = values // in this very spelling
	}
	res, err := w.httpClient(t, false, withCert).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
