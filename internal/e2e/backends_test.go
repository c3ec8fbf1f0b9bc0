// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// echoRequest answers with what arrived, in a form that a test reads lines of.
func echoRequest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s\nhost: %s\nbody: %d\n", r.Method, r.URL, r.Proto, r.Host, len(body))
	for name, values := range r.Header {
		fmt.Fprintf(w, "%s: %s\n", name, strings.Join(values, " | "))
	}
	w.Header().Set("X-Sum", "trailing")
}

// serveHTTP runs a backend on l until the test ends.
func serveHTTP(t *testing.T, l net.Listener, conf *tls.Config, h http.Handler) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: h, TLSConfig: conf, Protocols: protocols}
	go func() {
		if conf != nil {
			s.ServeTLS(l, "", "")
			return
		}
		s.Serve(l)
	}()
	t.Cleanup(func() { s.Close() })
}

// serveEcho runs a byte backend on l that answers with all that it was sent,
// once the client has ended its side.
func serveEcho(t *testing.T, l net.Listener) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				all, _ := io.ReadAll(c)
				c.Write(append([]byte("echo: "), all...))
			}()
		}
	}()
}

func listenOn(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// backendConfig writes a configuration with one listener and starts tlsd by it.
func backendConfig(t *testing.T, s store, lines ...string) *daemon {
	t.Helper()
	text := fmt.Sprintf("keystores:\n  - path: %s\n    password_file: %s\nlisteners:\n  - %s\n", s.path, s.password, strings.Join(lines, "\n    "))
	return start(t, "--config", writeFile(t, filepath.Join(t.TempDir(), "tlsd.yaml"), []byte(text)))
}

func TestHTTPBackends(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	ca := testca.NewRoot(t, testca.Spec{Name: "backend CA"})
	leaf := ca.Issue(t, testca.Spec{Name: "backend.test", DNS: []string{"backend.test"}})
	caFile := writeFile(t, filepath.Join(t.TempDir(), "backend.pem"), ca.CertPEM())
	conf := &tls.Config{Certificates: []tls.Certificate{{Certificate: leaf.Chain(), PrivateKey: leaf.Key}}}
	dir, err := os.MkdirTemp("", "e2e") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "http.sock")

	plain, secure, cleartext := listenOn(t, "tcp", "127.0.0.1:0"), listenOn(t, "tcp", "127.0.0.1:0"), listenOn(t, "tcp", "127.0.0.1:0")
	serveHTTP(t, plain, nil, http.HandlerFunc(echoRequest))
	serveHTTP(t, secure, conf, http.HandlerFunc(echoRequest))
	serveHTTP(t, cleartext, nil, http.HandlerFunc(echoRequest))
	serveHTTP(t, listenOn(t, "unix", socket), nil, http.HandlerFunc(echoRequest))

	for _, tc := range []struct{ name, backend, backendTLS, proto string }{
		{"http", "http://" + plain.Addr().String(), "", "HTTP/1.1"},
		{"https", "https://" + secure.Addr().String(), fmt.Sprintf("backend_tls: {ca: %s, name: backend.test}", caFile), ""},
		{"h2c", "h2c://" + cleartext.Addr().String(), "", "HTTP/2.0"},
		{"http+unix", "http+unix:" + socket, "", "HTTP/1.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lines := []string{"backend: " + tc.backend}
			if tc.backendTLS != "" {
				lines = append(lines, tc.backendTLS)
			}
			d := backendConfig(t, s, lines...)
			_, port, _ := net.SplitHostPort(d.addr)
			for _, version := range []string{"--http1.1", "--http2"} {
				out := mustCommand(t, testca.Tool(t, "curl"), "-sS", "-i", version, "--cacert", s.ca, "--resolve", "w.test:"+port+":127.0.0.1",
					"-H", "X-Forwarded-For: 6.6.6.6", "-H", "X-Client-Subject: forged", "-H", "client_cert: forged", "--data-binary", "hello", "https://w.test:"+port+"/a?b=c")
				for _, want := range []string{"POST /a?b=c " + tc.proto, "host: w.test:" + port, "body: 5", "X-Forwarded-Proto: https", "X-Forwarded-For: 127.0.0.1\n"} {
					if !strings.Contains(out, want) {
						t.Errorf("%s: no %q in\n%s", version, want, out)
					}
				}
				if strings.Contains(out, "6.6.6.6") || strings.Contains(out, "forged") {
					t.Errorf("%s: a forged header reaches the backend:\n%s", version, out)
				}
			}
			checkTrailer(t, d, s)
		})
	}
}

func checkTrailer(t *testing.T, d *daemon, s store) {
	t.Helper()
	conf := &tls.Config{RootCAs: s.root.Pool(), ServerName: "w.test"}
	transport := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("https://" + d.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if got := resp.Trailer.Get("X-Sum"); got != "trailing" {
		t.Errorf("trailer %q after %s", got, resp.Proto)
	}
}

func TestByteBackends(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	ca := testca.NewRoot(t, testca.Spec{Name: "backend CA"})
	leaf := ca.Issue(t, testca.Spec{Name: "backend.test", DNS: []string{"backend.test"}})
	caFile := writeFile(t, filepath.Join(t.TempDir(), "backend.pem"), ca.CertPEM())
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "bytes.sock")
	plain, secure := listenOn(t, "tcp", "127.0.0.1:0"), listenOn(t, "tcp", "127.0.0.1:0")
	serveEcho(t, plain)
	serveEcho(t, tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{{Certificate: leaf.Chain(), PrivateKey: leaf.Key}}}))
	serveEcho(t, listenOn(t, "unix", socket))
	for name, lines := range map[string][]string{
		"tcp":  {"backend: tcp://" + plain.Addr().String()},
		"tls":  {"backend: tls://" + secure.Addr().String(), fmt.Sprintf("backend_tls: {ca: %s, name: backend.test}", caFile)},
		"unix": {"backend: unix:" + socket},
	} {
		t.Run(name, func(t *testing.T) {
			d := backendConfig(t, s, lines...)
			c, err := tls.Dial("tcp", d.addr, &tls.Config{RootCAs: s.root.Pool(), ServerName: "w.test"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(20 * time.Second))
			payload := strings.Repeat("0123456789abcdef", 64<<10)
			if _, err := io.WriteString(c, payload); err != nil {
				t.Fatal(err)
			}
			if err := c.CloseWrite(); err != nil { // the backend answers after it, so that it must arrive
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			if err != nil || string(got) != "echo: "+payload {
				t.Errorf("%d bytes came back of %d: %v", len(got), len(payload), err)
			}
		})
	}
}

// TestBackendDownSaysNothingOfTheInside asks for what is not there.
func TestBackendDownSaysNothingOfTheInside(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	gone := freeAddr(t)
	d := start(t, append(s.args(), "--backend", "http://"+gone)...)
	out := mustCommand(t, testca.Tool(t, "curl"), "-sS", "-i", "-k", "https://"+d.addr+"/")
	_, port, _ := net.SplitHostPort(gone)
	if !strings.Contains(out, " 502") || strings.Contains(out, port) || strings.Contains(out, "refused") {
		t.Errorf("got\n%s", out)
	}
	d.awaitLog(gone)
}
