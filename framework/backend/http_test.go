// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// echo answers with what it was asked, one thing a line.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s\nHost: %s\n", r.Proto, r.Method, r.RequestURI, r.Host)
	_ = r.Header.Write(w)
	fmt.Fprintf(w, "\nbody %d %q\n", len(body), body)
}

func TestEveryKindOfHTTPBackend(t *testing.T) {
	w := newWorld(t)
	socket := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	onUnix := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(echo)}}
	onUnix.Start()
	t.Cleanup(onUnix.Close)
	tests := []struct{ name, target, proto string }{
		{"http", plainBackend(t, echo), "HTTP/1.1"},
		{"https", w.front(t, http.HandlerFunc(echo)), "HTTP/2.0"},
		{"h2c", "h2c://" + h2cBackend(t, echo), "HTTP/2.0"},
		{"http+unix", "http+unix:" + socket, "HTTP/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := w.front(t, newProxy(t, tt.target, func(c *HTTPConfig) { c.TLS = w.clientTLS(false) }))
			for _, version := range []string{"--http1.1", "--http2"} {
				got := w.mustCurl(t, version, "-H", "Host: www.example:444", "-d", "hello", url+"/a?b")
				for _, want := range []string{tt.proto + " POST /a?b\n", "Host: www.example:444\n", "\nbody 5 \"hello\"\n"} {
					if !strings.Contains(got, want) {
						t.Errorf("%s: no %q in\n%s", version, want, got)
					}
				}
			}
		})
	}
}

func TestRequestTargetStaysAsItWas(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, echo), nil))
	tests := []struct{ name, target, want string }{
		{"plain", "/a/b", "/a/b"},
		{"escaped-slash", "/a%2Fb", "/a%2Fb"},
		{"escaped-slash-and-quote", `/a%2Fb"c`, "/a%2Fb%22c"},
		{"double-slash", "//a//b", "//a//b"},
		{"dots", "/a/../b/.", "/a/../b/."},
		{"semicolon-query", "/?a=1;b=2&c=%zz", "/?a=1;b=2&c=%zz"},
		{"empty-query", "/?", "/?"},
		{"brackets", "/a[1]?b[]={}", "/a[1]?b[]={}"},
		{"utf8", "/ä?ö", "/%C3%A4?%C3%B6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, version := range []string{"--http1.1", "--http2"} {
				got := w.mustCurl(t, version, "--path-as-is", "-g", "--request-target", tt.target, url)
				line, _, _ := strings.Cut(got, "\n")
				if want := "HTTP/1.1 GET " + tt.want; line != want {
					t.Errorf("%s: backend got %q, want %q", version, line, want)
				}
			}
		})
	}
}

// A blank in an HTTP/2 path would end the request line of HTTP/1.1 early.
func TestBlankInTargetIsEscaped(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, echo), nil))
	tests := []struct{ name, target, want string }{
		{"path", "/a b HTTP/1.1", "/a%20b%20HTTP/1.1"},
		{"path-and-escaped-slash", "/a%2Fb c", "/a%2Fb%20c"},
		{"query", "/a?b HTTP/1.1", "/a?b%20HTTP/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := w.dialHTTP2(t, url)
			c.send(1, true, ":method", "GET", ":scheme", "https", ":path", tt.target, ":authority", "x")
			if h := c.header(1); h.status == "400" {
				return
			}
			line, _, _ := strings.Cut(c.body(1), "\n")
			if want := "HTTP/1.1 GET " + tt.want; line != want {
				t.Errorf("backend got %q, want %q", line, want)
			}
		})
	}
}

func TestConnectIsRefused(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, echo), nil))
	conn := w.dialRaw(t, url)
	fmt.Fprintf(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 501 ") {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestTrustInTheBackend(t *testing.T) {
	w, stranger := newWorld(t), newWorld(t)
	backend := w.front(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, r.TLS.ServerName, " ", len(r.TLS.VerifiedChains))
	}))
	byName := strings.Replace(backend, "127.0.0.1", "localhost", 1)
	wrongName := w.clientTLS(false)
	wrongName.ServerName = "elsewhere"
	noName := w.clientTLS(true)
	noName.ServerName = ""
	tests := []struct {
		name, target, want string
		change             func(*HTTPConfig)
	}{
		{"trusted", backend, "localhost 0", func(c *HTTPConfig) { c.TLS = w.clientTLS(false) }},
		{"name-from-url-and-client-certificate", byName, "localhost 1", func(c *HTTPConfig) { c.TLS = noName }},
		{"wrong-name", backend, "Bad Gateway\n", func(c *HTTPConfig) { c.TLS = wrongName }},
		{"other-authority", backend, "Bad Gateway\n", func(c *HTTPConfig) { c.TLS = stranger.clientTLS(false) }},
		{"system-trust", byName, "Bad Gateway\n", func(c *HTTPConfig) { c.TLS = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := w.front(t, newProxy(t, tt.target, tt.change))
			if diff := cmp.Diff(tt.want, w.mustCurl(t, url)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewHTTPRefuses(t *testing.T) {
	good := mustParse(t, "http://127.0.0.1:1")
	tests := []struct {
		name, want string
		cfg        HTTPConfig
	}{
		{"bytes", "not an HTTP backend", HTTPConfig{Target: mustParse(t, "tcp://127.0.0.1:1")}},
		{"format", "rfc9440, der-b64, pem-urlencoded and pem-spaces", HTTPConfig{Target: good, ClientHeaders: ClientHeaders{Cert: "A", Format: "pem"}}},
		{"name", "not a name", HTTPConfig{Target: good, ClientHeaders: ClientHeaders{Cert: "a b"}}},
		{"meaning", "meaning of its own", HTTPConfig{Target: good, ClientHeaders: ClientHeaders{Cert: "content_length"}}},
		{"cookie", "meaning of its own", HTTPConfig{Target: good, ClientHeaders: ClientHeaders{Subject: "Cookie"}}},
		{"twice", "named twice", HTTPConfig{Target: good, ClientHeaders: ClientHeaders{Cert: "a-b", Subject: "A_B"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewHTTP(tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A backend that closes the connection after it has read a POST may have acted
// on it, so that it must not see it again.
func TestPostIsSentOnce(t *testing.T) {
	w := newWorld(t)
	seen := make(chan string, 10)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/warm" {
			return
		}
		body, _ := io.ReadAll(r.Body)
		seen <- string(body)
		panic(http.ErrAbortHandler)
	})
	url := w.front(t, newProxy(t, backend, nil))
	bothVersions(t, func(t *testing.T, h2 bool) {
		client := w.httpClient(t, h2, false)
		for _, body := range []string{"", "order"} {
			res, err := client.Get(url + "/warm")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			res, err = client.Post(url+"/order", "", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusBadGateway {
				t.Errorf("status %d", res.StatusCode)
			}
			<-seen
			select {
			case again := <-seen:
				t.Errorf("backend saw %q twice", again)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}
