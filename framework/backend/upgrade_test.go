// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const upgradeRequest = "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// switching agrees to any Upgrade and then gives the connection to talk. A
// request without Upgrade is answered "no upgrade".
func switching(talk func(net.Conn, *bufio.Reader)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		proto := r.Header.Get("Upgrade")
		if proto == "" || !strings.EqualFold(r.Header.Get("Connection"), "upgrade") {
			fmt.Fprint(w, "no upgrade")
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Key: %s\r\n\r\n",
			proto, r.Header.Get("Sec-Websocket-Key"))
		talk(conn, buf.Reader)
	}
}

func echoLines(conn net.Conn, in *bufio.Reader) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, strings.ToUpper(line))
	}
}

// upgrade asks for proto and returns the connection and the status line.
func (w world) upgrade(t *testing.T, url, proto string) (net.Conn, *bufio.Reader, string) {
	t.Helper()
	conn := w.dialRaw(t, url)
	fmt.Fprintf(conn, upgradeRequest, proto)
	in := bufio.NewReader(conn)
	status, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for line := ""; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return conn, in, status
}

func TestUpgradeCarriesBytesBothWays(t *testing.T) {
	w := newWorld(t)
	targets := map[string]string{
		"http":  plainBackend(t, switching(echoLines)),
		"https": w.front(t, switching(echoLines)), // which prefers HTTP/2
	}
	for name, target := range targets {
		url := w.front(t, newProxy(t, target, func(c *HTTPConfig) { c.TLS = w.clientTLS(false) }))
		for _, proto := range []string{"websocket", "WebSocket", "spdy/3.1"} {
			t.Run(name+"-"+testName(proto), func(t *testing.T) {
				conn, in, status := w.upgrade(t, url, proto)
				if !strings.HasPrefix(status, "HTTP/1.1 101 ") {
					t.Fatalf("status %q", status)
				}
				for i := range 3 {
					fmt.Fprintf(conn, "ping %d\n", i)
					if line, err := in.ReadString('\n'); err != nil || line != fmt.Sprintf("PING %d\n", i) {
						t.Fatalf("got %q, %v", line, err)
					}
				}
			})
		}
	}
}

func TestUpgradeEndsOnBothSides(t *testing.T) {
	w := newWorld(t)
	ended := make(chan error, 1)
	url := w.front(t, newProxy(t, plainBackend(t, switching(func(conn net.Conn, in *bufio.Reader) {
		_, err := in.ReadString('\n')
		if err == nil {
			return // and so close
		}
		ended <- err
	})), nil))
	t.Run("by-client", func(t *testing.T) {
		conn, _, _ := w.upgrade(t, url, "websocket")
		conn.Close()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("backend's connection stays")
		}
	})
	t.Run("by-backend", func(t *testing.T) {
		conn, in, _ := w.upgrade(t, url, "websocket")
		fmt.Fprintln(conn, "bye")
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("got %q, %v", rest, err)
		}
	})
}

// Protocols that carry requests would carry forged header fields past the proxy.
func TestUpgradeThatIsNotPassedOn(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, switching(echoLines)), nil))
	for _, proto := range []string{"h2c", "H2C", "websocket, h2c", "TLS/1.0", "HTTP/2.0", "\xff"} {
		t.Run(testName(proto), func(t *testing.T) {
			_, in, status := w.upgrade(t, url, proto)
			body := make([]byte, len("no upgrade"))
			_, err := io.ReadFull(in, body)
			if !strings.HasPrefix(status, "HTTP/1.1 200 ") || string(body) != "no upgrade" {
				t.Errorf("got %q, %q, %v", status, body, err)
			}
		})
	}
	t.Run("two-fields", func(t *testing.T) {
		_, _, status := w.upgrade(t, url, "websocket\r\nUpgrade: h2c")
		if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
			t.Errorf("got %q", status)
		}
	})
	t.Run("h2c-backend", func(t *testing.T) {
		url := w.front(t, newProxy(t, "h2c://"+h2cBackend(t, switching(echoLines)), nil))
		_, _, status := w.upgrade(t, url, "websocket")
		if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
			t.Errorf("got %q", status)
		}
	})
}

// HTTP/2 has no Upgrade: such a request is malformed (RFC 9113, 8.2.2), and it
// must end rather than hang. Nor is extended CONNECT (RFC 8441) announced.
func TestUpgradeOverHTTP2Ends(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, switching(echoLines)), nil))
	c := w.dialHTTP2(t, url)
	c.send(1, true, ":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x",
		"connection", "Upgrade", "upgrade", "websocket", "sec-websocket-version", "13")
	if h := c.header(1); h.status != "400" && h.status != "PROTOCOL_ERROR" {
		t.Errorf("got %+v", h)
	}
	out, err := w.curl(t, "--http2", "-m", "20", "-o", "/dev/null", "-w", "%{http_code} %{http_version}",
		"-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13", url)
	if !strings.HasSuffix(out, " 2") {
		t.Errorf("curl: %s, %v", out, err)
	}
	c = w.dialHTTP2(t, url)
	c.send(1, true, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/", ":authority", "x")
	if h := c.header(1); h.status != "400" && h.status != "PROTOCOL_ERROR" {
		t.Errorf("extended CONNECT: %+v", h)
	}
}
