// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hinting is an HTTP backend that says 103 first, and then answers or, if broken,
// breaks off.
func hinting(t *testing.T, broken bool) string {
	t.Helper()
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		if broken {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "answer")
	}))
	t.Cleanup(b.Close)
	return b.URL
}

// TestLastAnswerAfterEarlyHints tells the client that the connection ends, in the
// final answer and nowhere else, whoever gives it.
func TestLastAnswerAfterEarlyHints(t *testing.T) {
	for name, broken := range map[string]bool{"200": false, "502": true} {
		for ending, limits := range map[string]Limits{"lifetime": {Lifetime: time.Second}, "drain": {}} {
			t.Run(ending+"-"+name, func(t *testing.T) {
				t.Parallel()
				s := serve(t, Config{Listeners: []Listener{{Backend: hinting(t, broken)}}, Limits: limits, Drain: 10 * time.Second})
				if ending == "drain" {
					s.drains.Store(true)
				}
				t.Run("http1", func(t *testing.T) { lastOfHTTP1(t, s, name) })
				t.Run("h2", func(t *testing.T) { lastOfHTTP2(t, s, name) })
			})
		}
	}
}

// lastOfHTTP1 makes requests until an answer says that it is the last.
func lastOfHTTP1(t *testing.T, s *running, status string) {
	c, err := s.dial(t, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(8 * time.Second))
	in := bufio.NewReader(c)
	for closes := false; !closes; time.Sleep(20 * time.Millisecond) {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		for _, want := range []string{"103", status} {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if closes = resp.Close; !strings.HasPrefix(resp.Status, want) || closes && want == "103" {
				t.Fatalf("%s, close %v, want %s", resp.Status, closes, want)
			}
		}
	}
}

// lastOfHTTP2 makes requests until it is told by GOAWAY to make no more.
func lastOfHTTP2(t *testing.T, s *running, status string) {
	c, err := s.dial(t, func(c *tls.Config) { c.NextProtos = []string{"h2"} })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(8 * time.Second))
	_, _ = io.WriteString(c, http2.ClientPreface)
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	ask := func(stream uint32) {
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, EndStream: true, BlockFragment: getRequest(t)})
	}
	ask(1)
	goAway, answered := false, 0
	for !goAway || answered == 0 {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("GOAWAY %v, %d answers: %v", goAway, answered, err)
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			goAway = true
		case *http2.RSTStreamFrame:
			t.Fatalf("the request failed: %v", f)
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "connection" {
					t.Fatalf("malformed: %v", f.Fields)
				}
			}
			if f.PseudoValue("status") == status {
				answered++
			}
		}
		if h := f.Header(); h.StreamID != 0 && h.Flags.Has(http2.FlagDataEndStream) && !goAway {
			time.Sleep(20 * time.Millisecond)
			ask(h.StreamID + 2)
		}
	}
}

// TestNewRulesForwardNothing of clients that never met them: neither requests nor
// what would become a WebSocket.
func TestNewRulesForwardNothing(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	guarded := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer guarded.Close()
	cas := newClientCAs(t)
	l := Listener{Listen: "127.0.0.1:0", Backend: answering(t, "public"), ClientCA: TrustStore{Path: "a.pem"}}
	s := serveTrusting(t, Config{Listeners: []Listener{l}}, cas.by)
	plain, upgrade := s.kept(t), s.kept(t)
	h2 := s.httpClient(t, true)
	if got := fetch(t, h2, "https://"+s.addr()); got != "new connection" {
		t.Fatal(got)
	}
	l.ClientAuth, l.Backend = ClientAuthRequire, guarded.URL
	if err := s.Apply(t.Context(), Config{Listeners: []Listener{l}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		c      *tls.Conn
		fields string
	}{{plain, ""}, {upgrade, "Connection: Upgrade\r\nUpgrade: websocket\r\n"}} {
		fmt.Fprint(tt.c, "GET / HTTP/1.1\r\nHost: a.test\r\n", tt.fields, "\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(tt.c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMisdirectedRequest || !resp.Close {
			t.Errorf("%q: %s, close %v", tt.fields, resp.Status, resp.Close)
		}
	}
	if got := fetch(t, h2, "https://"+s.addr()); got != "421" {
		t.Errorf("HTTP/2: %s", got)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the backend", n)
	}
}

// kept makes an HTTP/1.1 connection that has had an answer.
func (r *running) kept(t *testing.T) *tls.Conn {
	t.Helper()
	c, err := r.dial(t, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return c
}
