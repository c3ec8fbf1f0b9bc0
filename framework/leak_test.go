// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestConnectionsLeaveNothing makes 500 connections of every fate, with keys in
// a child, and compares goroutines and file descriptors.
func TestConnectionsLeaveNothing(t *testing.T) {
	k, root := openTier(t, "pkixcached", testca.P256)
	s := serveKeys(t, Config{Listeners: []Listener{{Backend: echo(t)}}}, k)
	s.root = root
	cache := tls.NewLRUClientSessionCache(1)
	fates := []func(){
		func() { s.echoed(t, func(c *tls.Config) { c.ClientSessionCache = cache }) },
		func() { s.echoed(t, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }) },
		func() { // the client distrusts the server
			if _, err := tls.Dial("tcp", s.addr(), &tls.Config{ServerName: "a.test"}); err == nil {
				t.Error("an unknown root was trusted")
			}
		},
		func() { // a probe
			if c, err := net.Dial("tcp", s.addr()); err == nil {
				c.Close()
			}
		},
		func() { // garbage
			if c, err := net.Dial("tcp", s.addr()); err == nil {
				_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
				c.Close()
			}
		},
	}
	each := func(n int) {
		for i := range n {
			fates[i%len(fates)]()
		}
	}
	each(len(fates)) // what is made once is made now
	goroutines, files := settled(t, func() bool { return s.conns.count() == 0 })
	goroutines -= len(s.handshakes.idle) // there may be some more, up to a bound
	each(500)
	var g, f int
	settled(t, func() bool {
		g, f = runtime.NumGoroutine()-len(s.handshakes.idle), openFiles(t)
		return s.conns.count() == 0 && g <= goroutines && f <= files
	})
	if g > goroutines || f > files {
		t.Errorf("%d goroutines and %d files, before 500 connections %d and %d", g, f, goroutines, files)
	}
}

// echoed makes one connection to an echoing backend and uses it.
func (r *running) echoed(t testing.TB, change func(*tls.Config)) {
	t.Helper()
	c, err := r.dial(t, change)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "x")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// settled waits for what connections leave behind to be gone, for some seconds
// at most, and returns how many goroutines and files there are.
func settled(t testing.TB, done func() bool) (goroutines, files int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return runtime.NumGoroutine(), openFiles(t)
}

func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS != "linux" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
