// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// downManager is a key manager whose process is down.
type downManager struct {
	*fake
	status plugin.Status
}

func (m *downManager) Status() plugin.Status { return m.status }

func TestReady(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	m := &downManager{fake: f, status: plugin.Status{Up: true}}
	cfg := Config{Listeners: []Listener{{Listen: "127.0.0.1:0"}}}.withListeners()
	waiting, err := newServer(t.Context(), cfg, newKeys(m, "fake", &Config{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := waiting.Ready(); !errors.Is(err, ErrStarting) {
		t.Errorf("before Run: %v", err)
	}
	if err := waiting.Close(); err != nil {
		t.Error(err)
	}
	s := serveKeys(t, Config{Listeners: []Listener{{}}}, newKeys(m, "fake", &Config{}))
	s.root = root
	<-s.Serving()
	if err := s.Ready(); err != nil {
		t.Errorf("serving: %v", err)
	}
	m.status = plugin.Status{Err: errors.New("exit status 3")}
	if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("down: %v", err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if err := s.Ready(); !errors.Is(err, ErrEnding) {
		t.Errorf("at the end: %v", err)
	}
}

// TestDrainDelay: not ready at once, and yet new connections are served until the
// delay is over. Then open ones have their time.
func TestDrainDelay(t *testing.T) {
	const delay = 500 * time.Millisecond
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}, DrainDelay: delay})
	<-s.Serving()
	old, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	for s.Ready() == nil {
		time.Sleep(time.Millisecond)
	}
	served := 0
	for {
		c, err := net.Dial("tcp", s.addr())
		if err != nil {
			break
		}
		c.Close()
		served++
		time.Sleep(10 * time.Millisecond)
	}
	if d := time.Since(began); d < delay || served == 0 {
		t.Errorf("%d connections in %v, want some for %v", served, d, delay)
	}
	_, _ = io.WriteString(old, "x")
	if _, err := io.ReadFull(old, make([]byte, 1)); err != nil {
		t.Errorf("an open connection: %v", err)
	}
	old.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestNobodyWaitsForADelayInVain: not Close, not a Server without a key manager,
// and not one whose sockets another process has.
func TestNobodyWaitsForADelayInVain(t *testing.T) {
	cfg := Config{Listeners: []Listener{{}}, DrainDelay: time.Hour}
	t.Run("close", func(t *testing.T) {
		s := serve(t, cfg)
		go func() { _ = s.end() }()
		for !errors.Is(s.Ready(), ErrEnding) {
			time.Sleep(time.Millisecond)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("lost", func(t *testing.T) {
		f, root := fakeOf(t, testca.P256)
		f.done = make(chan struct{})
		s := serveFake(t, cfg, f, root)
		s.mayBeLost = true
		go func() { _ = s.end() }()
		for !errors.Is(s.Ready(), ErrEnding) {
			time.Sleep(time.Millisecond)
		}
		close(f.done)
		if err := s.wait(); !errors.As(err, new(*LostError)) {
			t.Errorf("Run: %v", err)
		}
	})
	t.Run("handed-over", func(t *testing.T) {
		f, _ := fakeOf(t, testca.P256)
		all := cfg.withListeners()
		all.Listeners[0].Listen = "127.0.0.1:0"
		s, err := newServer(t.Context(), all, newKeys(f, "fake", &Config{}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrHandedOver)
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestDrainTellsHTTPToGo: an answer that comes after the listeners closed is the
// connection's last, in HTTP/1 and HTTP/2, although another client's handshake
// holds up the rest.
func TestDrainTellsHTTPToGo(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{}}})
	slow, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_, _ = io.WriteString(slow, "\x16\x03\x01")
	c, err := s.dial(t, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h2, err := s.dial(t, func(c *tls.Config) { c.NextProtos = []string{"h2"} })
	if err != nil {
		t.Fatal(err)
	}
	defer h2.Close()
	_, _ = io.WriteString(h2, http2.ClientPreface)
	framer := http2.NewFramer(h2, h2)
	_ = framer.WriteSettings()
	for !s.conns.some(func(c *conn) bool { return c.shaking.Load() && c.heard.Load() }) {
		time.Sleep(time.Millisecond)
	}
	go func() { _ = s.end() }()
	for !s.drains.Load() {
		time.Sleep(time.Millisecond)
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	_ = c.SetDeadline(time.Now().Add(8 * time.Second))
	answer, err := io.ReadAll(c) // to its end
	if err != nil || !strings.Contains(string(answer), "Connection: close") {
		t.Errorf("%.200q, %v", answer, err)
	}
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: getRequest(t)})
	_ = h2.SetDeadline(time.Now().Add(8 * time.Second))
	for last := false; !last; {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("no GOAWAY: %v", err)
		}
		_, last = f.(*http2.GoAwayFrame)
	}
	slow.Close()
}

// getRequest returns the header of a request for a.test.
func getRequest(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {":authority", "a.test"}} {
		if err := e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
