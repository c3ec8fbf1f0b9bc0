// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// witness is an Observer that remembers.
type witness struct {
	mu         sync.Mutex
	handshakes []HandshakeEvent
	ended      []ConnectionEvent
	dropped    []string
	signed     []SignatureEvent
	open       int
}

func (w *witness) observer() Observer {
	locked := func(f func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
	}
	return Observer{
		Handshake: func(e HandshakeEvent) { locked(func() { w.handshakes = append(w.handshakes, e) }) },
		Signature: func(e SignatureEvent) { locked(func() { w.signed = append(w.signed, e) }) },
		Opened:    func(string) { locked(func() { w.open++ }) },
		Closed:    func(e ConnectionEvent) { locked(func() { w.open--; w.ended = append(w.ended, e) }) },
		Dropped:   func(_, limit string) { locked(func() { w.dropped = append(w.dropped, limit) }) },
	}
}

// await waits until there is a connection that has ended and returns the n-th.
func (w *witness) await(t testing.TB, n int) ConnectionEvent {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		if len(w.ended) > n {
			defer w.mu.Unlock()
			return w.ended[n]
		}
		w.mu.Unlock()
	}
	t.Fatalf("connection %d does not end", n)
	return ConnectionEvent{}
}

func TestConnectionsOverALimitAreClosed(t *testing.T) {
	for limit, limits := range map[string]Limits{
		limitConnections: {Connections: 1},
		limitPerIP:       {ConnectionsPerIP: 1},
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			core, logs := observerCore()
			s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}, {Backend: echo(t)}}, Limits: limits, Observer: w.observer(), Log: zap.New(core)})
			first, err := s.dial(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, addr := range s.Addrs() { // over all listeners
				wantEndBeforeAWord(t, addr.String())
			}
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			w.await(t, 0)
			s.echoed(t, nil)
			if err := s.end(); err != nil {
				t.Error(err)
			}
			if w.open != 0 || len(w.dropped) != 2 || w.dropped[0] != limit {
				t.Errorf("dropped %v, %d open at the end", w.dropped, w.open)
			}
			lines := logs.FilterMessage("connection refused: a limit is reached").All()
			if len(lines) == 0 || lines[0].ContextMap()["limit"] != "limits."+limit {
				t.Errorf("log: %v", lines)
			}
		})
	}
}

// TestHandshakesOverALimitAreClosed, while those that are done take no room.
func TestHandshakesOverALimitAreClosed(t *testing.T) {
	w := &witness{}
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}, Limits: Limits{Handshakes: 1}, Observer: w.observer()})
	done, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done.Close()
	for s.conns.some(func(c *conn) bool { return c.shaking.Load() }) { // the client is done first
		time.Sleep(time.Millisecond)
	}
	silent, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	wantEndBeforeAWord(t, s.addr())
	silent.Close()
	w.await(t, 0)
	s.echoed(t, nil)
	if len(w.dropped) != 1 || w.dropped[0] != limitHandshakes {
		t.Errorf("dropped %v", w.dropped)
	}
}

func wantEndBeforeAWord(t testing.TB, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return // as fast as that
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes, %v: want a reset", n, err)
	}
}

func TestClientsAreCountedByAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7:1":           "192.0.2.7",
		"[::ffff:192.0.2.7]:1":  "192.0.2.7",
		"[2001:db8:1:2:3::4]:1": "2001:db8:1:2::",
		"[2001:db8:1:2::9]:1":   "2001:db8:1:2::",
		"[fe80::1%eth0]:1":      "fe80::",
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))
		if got := clientIP(addr); got.String() != want {
			t.Errorf("%s counts as %s, want %s", text, got, want)
		}
	}
	if clientIP(&net.UnixAddr{Name: "@"}).IsValid() {
		t.Error("a unix socket has an IP address")
	}
}
