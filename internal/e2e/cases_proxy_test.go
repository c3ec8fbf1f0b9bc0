// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// requested starts tlsd in front of an HTTP backend.
func requested(t *testing.T, scheme string, h http.HandlerFunc) (*daemon, store) {
	t.Helper()
	l := listenOn(t, "tcp", "127.0.0.1:0")
	serveHTTP(t, l, nil, h)
	return proxying(t, fmt.Sprintf(`{backend: "%s://%s"}`, scheme, l.Addr()))
}

// curl asks for path of w.test.
func (d *daemon) curl(t *testing.T, s store, path string, args ...string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(d.addr)
	args = append([]string{"-sS", "-m", "20", "--cacert", s.ca, "--resolve", "w.test:" + port + ":127.0.0.1"}, args...)
	return mustCommand(t, testca.Tool(t, "curl"), append(args, "https://w.test:"+port+path)...)
}

const upgrade = "GET / HTTP/1.1\r\nHost: w.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// TestCaseX02_WebSocket: bytes both ways, the close of one side closes the other,
// and over HTTP/2 such a request ends.
func TestCaseX02_WebSocket(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	d, s := requested(t, "http", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, "no upgrade")
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil || line == "bye\n" {
				ended <- err
				return
			}
			fmt.Fprintf(c, "you said %s", line)
		}
	})
	open := func() (*tls.Conn, *bufio.Reader) {
		c, err := tls.Dial("tcp", d.addr, clientOf(s)) // no ALPN: HTTP/1.1
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, upgrade)
		r := bufio.NewReader(c)
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, %v", resp, err)
		}
		for _, text := range []string{"one\n", "two\n"} {
			io.WriteString(c, text)
			if got, err := r.ReadString('\n'); got != "you said "+text {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		return c, r
	}
	c, r := open()
	io.WriteString(c, "bye\n")
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after the backend closed: %q, %v", rest, err)
	}
	c.Close()
	<-ended
	c, _ = open()
	c.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the backend's side stays open")
	}
	out := d.curl(t, s, "/", "--http2", "-o", "/dev/null", "-w", "%{http_code} %{http_version}",
		"-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13")
	if !strings.HasSuffix(out, " 2") {
		t.Errorf("over HTTP/2: %s", out)
	}
}

// TestCaseX02_IdleWebSocket: none of the times of handshakes and answers is that of
// an upgraded connection.
func TestCaseX02_IdleWebSocket(t *testing.T) {
	t.Parallel()
	l := listenOn(t, "tcp", "127.0.0.1:0")
	serveHTTP(t, l, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}))
	d, s := proxying(t, fmt.Sprintf(`{backend: "http://%s", backend_timeout: {connect: 300ms, first_byte: 300ms}}`, l.Addr()),
		"limits: {handshake_timeout: 500ms}")
	c, err := tls.Dial("tcp", d.addr, clientOf(s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, upgrade)
	r := bufio.NewReader(c)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	time.Sleep(2 * time.Second)
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, "still there?\n")
	if got, err := r.ReadString('\n'); got != "still there?\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestCaseX04_ALPN of a listener for bytes and of one for HTTP.
func TestCaseX04_ALPN(t *testing.T) {
	t.Parallel()
	openssl := testca.Tool(t, "openssl")
	bytes, _ := proxying(t, byLine(t))
	web, s := requested(t, "http", echoRequest)
	for _, tt := range []struct {
		name, want string
		d          *daemon
		args       []string
	}{
		{"bytes-foo", "No ALPN negotiated", bytes, []string{"-alpn", "foo"}},
		{"bytes-h2", "No ALPN negotiated", bytes, []string{"-alpn", "h2,http/1.1"}},
		{"bytes-none", "No ALPN negotiated", bytes, nil},
		{"web-h2", "ALPN protocol: h2", web, []string{"-alpn", "h2,http/1.1"}},
		{"web-http1", "ALPN protocol: http/1.1", web, []string{"-alpn", "foo,http/1.1"}},
		{"web-none", "No ALPN negotiated", web, nil},
		{"web-foo", "alert number 120", web, []string{"-alpn", "foo"}},
	} {
		out, _ := command(t, openssl, append([]string{"s_client", "-connect", tt.d.addr, "-servername", "w.test"}, tt.args...)...)
		if !strings.Contains(out, tt.want) {
			t.Errorf("%s: want %q\n%s", tt.name, tt.want, out)
		}
	}
	for version, args := range map[string][]string{"HTTP/2": {"--http2"}, "HTTP/1.1": {"--no-alpn"}} {
		if out := web.curl(t, s, "/", append(args, "-i")...); !strings.HasPrefix(out, version+" 200") {
			t.Errorf("%s: %s", version, out)
		}
	}
}

// TestCaseX05_LargeHeaders both ways, and too large ones.
func TestCaseX05_LargeHeaders(t *testing.T) {
	t.Parallel()
	d, s := requested(t, "http", func(w http.ResponseWriter, r *http.Request) {
		for i := range 15 {
			w.Header().Add("Set-Cookie", fmt.Sprintf("c%02d=%s", i, strings.Repeat("s", 4000)))
		}
		fmt.Fprint(w, len(r.Header.Get("Cookie")))
	})
	for _, version := range []string{"--http1.1", "--http2"} {
		out := d.curl(t, s, "/", version, "-i", "-H", "Cookie: a="+strings.Repeat("x", 60_000))
		if n := strings.Count(strings.ToLower(out), "set-cookie: c"); n != 15 || !strings.HasSuffix(out, "60002") || strings.Count(out, "s") < 60_000 {
			t.Errorf("%s: %d cookies came, %.100q", version, n, out)
		}
	}
	c, err := tls.Dial("tcp", d.addr, clientOf(s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	go func() {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: w.test\r\n")
		for range 32 {
			fmt.Fprintf(c, "Cookie: %s\r\n", strings.Repeat("x", 64<<10))
		}
	}()
	if answer, err := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
		t.Errorf("2 MB: %.80q, %v", answer, err)
	}
	if out := d.curl(t, s, "/"); out != "0" {
		t.Errorf("afterwards: %s", out)
	}
}

// TestCaseX06_Trailers and streams of gRPC, over h2c and not.
func TestCaseX06_Trailers(t *testing.T) {
	t.Parallel()
	grpc := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/refused" { // trailers only
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "5")
			return
		}
		_ = http.NewResponseController(w).Flush() // or there is a length, and net/http sends no trailer
		_, _ = w.Write(body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}
	for _, scheme := range []string{"h2c", "http"} {
		d, s := requested(t, scheme, grpc)
		for _, version := range []string{"--http2", "--http1.1"} {
			out := d.curl(t, s, "/said", version, "-i", "-H", "TE: trailers", "-d", "message")
			if !strings.Contains(strings.ToLower(out), "grpc-status: 0") || !strings.Contains(out, "message") {
				t.Errorf("%s, %s: no trailer in\n%s", scheme, version, out)
			}
			if out := d.curl(t, s, "/refused", version, "-i", "-d", "x"); !strings.Contains(strings.ToLower(out), "grpc-status: 5") {
				t.Errorf("%s, %s:\n%s", scheme, version, out)
			}
		}
	}
	l := listenOn(t, "tcp", "127.0.0.1:0")
	h2only := new(http.Protocols)
	h2only.SetUnencryptedHTTP2(true)
	only := &http.Server{Handler: http.HandlerFunc(grpc), Protocols: h2only}
	go only.Serve(l)
	t.Cleanup(func() { only.Close() })
	d, s := proxying(t, fmt.Sprintf(`{backend: "http://%s"}`, l.Addr()))
	if out := d.curl(t, s, "/said", "-i", "-d", "x"); !strings.Contains(out, " 502") {
		t.Errorf("h2c without being told:\n%s", out)
	}
	d.awaitLog(`"backend failed"`)
}

// TestCaseX07_ForgedHeaders never reach a backend, however they are spelled.
func TestCaseX07_ForgedHeaders(t *testing.T) {
	t.Parallel()
	d, s := requested(t, "http", echoRequest)
	var args []string
	for _, name := range []string{
		"X-Forwarded-Client-Cert", "X-SSL-Client-Cert", "x_ssl_client_dn", "Ssl-Client-Verify", "ssl_client_cert", "SSL_CLIENT_CERT",
		"Client-Cert", "client_cert_chain", "X-Client-Subject", "X-Forwarded-Proto", "x_forwarded_for", "X-Forwarded-Host",
		"X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP",
	} {
		args = append(args, "-H", name+": forged")
	}
	for _, version := range []string{"--http1.1", "--http2"} {
		out := d.curl(t, s, "/", append(args, version, "-H", "Kept: kept")...)
		if strings.Contains(out, "forged") {
			t.Errorf("%s:\n%s", version, out)
		}
		for _, want := range []string{"X-Forwarded-Proto: https\n", "X-Forwarded-For: 127.0.0.1\n", "Forwarded: for=127.0.0.1;", "Kept: kept\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", version, want, out)
			}
		}
	}
}
