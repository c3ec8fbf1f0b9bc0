// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// recorder keeps the last record header that was read through it.
type recorder struct {
	net.Conn
	mu sync.Mutex
	in []byte
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in = append(r.in, b[:n]...)
	return n, err
}

// endedInOrder says whether the last TLS 1.2 record was an alert.
func (r *recorder) endedInOrder() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := byte(0)
	for rest := r.in; len(rest) >= 5; rest = rest[min(len(rest), 5+int(rest[3])<<8+int(rest[4])):] {
		last = rest[0]
	}
	return last == 21
}

// recorded makes a TLS 1.2 connection, in which alerts can be told by their type.
func (r *running) recorded(t testing.TB) (*tls.Conn, *recorder) {
	t.Helper()
	raw, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(15 * time.Second))
	cfg := clientOf(r.root, "a.test")
	cfg.MaxVersion = tls.VersionTLS12
	rec := &recorder{Conn: raw}
	c := tls.Client(rec, cfg)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c, rec
}

// TestBytesEndByALimit: the client is told that nothing follows, and the backend's
// connection ends too.
func TestBytesEndByALimit(t *testing.T) {
	for result, limits := range map[string]Limits{
		ConnectionIdle:     {Idle: time.Second},
		ConnectionLifetime: {Lifetime: 2 * time.Second},
	} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			backendEnded := make(chan error, 1)
			s := serve(t, Config{Listeners: []Listener{{Backend: echoUntil(t, backendEnded)}}, Limits: limits, Observer: w.observer()})
			began := time.Now()
			c, rec := s.recorded(t)
			for range 5 { // bytes keep it from being idle
				_, _ = io.WriteString(c, "x")
				if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			_, err := c.Read(make([]byte, 1))
			if err != io.EOF || !rec.endedInOrder() {
				t.Errorf("the client reads %v, in order: %t", err, rec.endedInOrder())
			}
			if d := time.Since(began); d < 1300*time.Millisecond {
				t.Errorf("ended after %v", d)
			}
			c.Close()
			if got := w.await(t, 0); got.Result != result {
				t.Errorf("%+v, want %s", got, result)
			}
			<-backendEnded
		})
	}
}

// echoUntil is an echoing backend that tells by what its connection ends.
func echoUntil(t testing.TB, ended chan<- error) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, err = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
		ended <- err
	}()
	return "tcp://" + ln.Addr().String()
}

// TestStuckClientIsIdle: one that reads nothing more holds a write, and is
// ended all the same.
func TestStuckClientIsIdle(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for err == nil {
					_, err = c.Write(make([]byte, 64<<10))
				}
			}()
		}
	}()
	w := &witness{}
	s := serve(t, Config{Listeners: []Listener{{Backend: "tcp://" + ln.Addr().String()}}, Limits: Limits{Idle: 200 * time.Millisecond}, Observer: w.observer()})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := w.await(t, 0); got.Result != ConnectionIdle {
		t.Errorf("%+v", got)
	}
}

// TestClientThatStopsReadingIsIdle: what it asked for has come, so that nobody
// waits for the backend any more, however long that might have taken.
func TestClientThatStopsReadingIsIdle(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"GET":  "GET /flood HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"POST": "POST /flood HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			s := serve(t, Config{Listeners: []Listener{{Backend: requests(t), FirstByte: time.Hour}}, Limits: Limits{Idle: 500 * time.Millisecond}, Observer: w.observer()})
			c, err := s.dial(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			if got := w.await(t, 0); got.Result != ConnectionIdle {
				t.Errorf("%+v", got)
			}
		})
	}
}

// requests serves requests by path: / at once, /slow after three seconds, /body when
// the body is read, /forever never, /flood without end.
func requests(t testing.TB) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method, " ", r.RequestURI) })
	mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) })
	mux.HandleFunc("/body", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	mux.HandleFunc("/flood", func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 64<<10))
		}
	})
	mux.HandleFunc("/forever", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/switch", func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(c, rw)
	})
	b := httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b.URL
}

// TestIdleHTTP: what ends, and what doesn't although no byte passes.
func TestIdleHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		say    string // the request
		answer string // first line; empty: none
		result string
	}{
		"nothing":   {"", "", ConnectionIdle},
		"kept":      {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK", ConnectionIdle},
		"slow":      {"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 200 OK", ConnectionIdle},
		"slow-post": {"POST /slow HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 200 OK", ConnectionIdle},
		"stalled":   {"POST /body HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nx", "", ConnectionIdle},
		"websocket": {"GET /switch HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 101 Switching Protocols", ConnectionIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			s := serve(t, Config{Listeners: []Listener{{Backend: requests(t), FirstByte: 10 * time.Second}}, Limits: Limits{Idle: time.Second}, Observer: w.observer()})
			c, rec := s.recorded(t)
			_, _ = io.WriteString(c, tt.say)
			in := bufio.NewReader(c)
			line, err := in.ReadString('\n')
			if strings.TrimSpace(line) != tt.answer {
				t.Errorf("answer %q, %v; want %q", line, err, tt.answer)
			}
			_, _ = io.Copy(io.Discard, in)
			if !rec.endedInOrder() {
				t.Error("without close_notify")
			}
			c.Close()
			if got := w.await(t, 0); got.Result != tt.result {
				t.Errorf("%+v, want %s", got, tt.result)
			}
		})
	}
}

// TestLifetimeOfHTTP: the next answer is the last, what takes longer is cut when
// a drain would cut it.
func TestLifetimeOfHTTP(t *testing.T) {
	t.Parallel()
	w := &witness{}
	s := serve(t, Config{Listeners: []Listener{{Backend: requests(t)}}, Limits: Limits{Lifetime: 500 * time.Millisecond}, Drain: 2 * time.Second, Observer: w.observer()})
	c, _ := s.recorded(t)
	in := bufio.NewReader(c)
	closes := false
	for n := 0; !closes; n++ {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		closes = resp.Close
		time.Sleep(50 * time.Millisecond)
	}
	if got := w.await(t, 0); got.Result != ConnectionClosed || got.Duration < 500*time.Millisecond {
		t.Errorf("%+v", got)
	}
	c, _ = s.recorded(t)
	fmt.Fprint(c, "GET /forever HTTP/1.1\r\nHost: a.test\r\n\r\n")
	_, _ = io.Copy(io.Discard, c)
	if got := w.await(t, 1); got.Result != ConnectionLifetime || got.Duration < 2500*time.Millisecond {
		t.Errorf("%+v", got)
	}
}

// TestHTTP2IsToldToGo by GOAWAY, between requests and after a lifetime.
func TestHTTP2IsToldToGo(t *testing.T) {
	for name, limits := range map[string]Limits{
		"idle":     {Idle: 2 * time.Second}, // there is a handshake in it
		"lifetime": {Lifetime: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Config{Listeners: []Listener{{Backend: requests(t)}}, Limits: limits})
			c, err := s.dial(t, func(c *tls.Config) { c.NextProtos = []string{"h2"} })
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			fr := http2.NewFramer(c, c)
			_, _ = io.WriteString(c, http2.ClientPreface)
			_ = fr.WriteSettings()
			for {
				f, err := fr.ReadFrame()
				if err != nil {
					t.Fatalf("no GOAWAY: %v", err)
				}
				if g, ok := f.(*http2.GoAwayFrame); ok {
					if g.ErrCode != http2.ErrCodeNo {
						t.Errorf("GOAWAY %v", g.ErrCode)
					}
					return
				}
			}
		})
	}
}

// TestOptionsOfTheServerReachTheBackend, whose answer it is.
func TestOptionsOfTheServerReachTheBackend(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Listeners: []Listener{{Backend: requestLine(t)}}})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("X-Line") != "OPTIONS * HTTP/1.1" {
		t.Errorf("the backend got %q", resp.Header.Get("X-Line"))
	}
}

// requestLine is a backend that answers with the first line that it reads.
func requestLine(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Line: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", strings.TrimSpace(line))
			c.Close()
		}
	}()
	return "http://" + ln.Addr().String()
}

// TestRequestsOfOneConnectionAreBounded: each may take a connection to the
// backend.
func TestRequestsOfOneConnectionAreBounded(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: requests(t)}}})
	c, err := s.dial(t, func(c *tls.Config) { c.NextProtos = []string{"h2"} })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	fr := http2.NewFramer(c, c)
	if err := fr.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	f, err := fr.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("the server begins with %v", f)
	}
	if n, _ := settings.Value(http2.SettingMaxConcurrentStreams); n != 100 {
		t.Errorf("%d requests at once, want 100", n)
	}
}
