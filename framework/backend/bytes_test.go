// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bytesFront serves b over TLS as tlsd does, and returns its address. Results of
// Forward go to the channel.
func (w world) bytesFront(t testing.TB, b *Bytes) (string, <-chan error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", w.serverTLS())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan error, 1000)
	t.Cleanup(func() { l.Close(); cancel() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				c := conn.(*tls.Conn)
				if err := c.HandshakeContext(ctx); err != nil {
					results <- err
					return
				}
				results <- b.Forward(ctx, c)
			}()
		}
	}()
	return l.Addr().String(), results
}

func newBytes(t testing.TB, target string, change func(*BytesConfig)) *Bytes {
	t.Helper()
	cfg := BytesConfig{Target: mustParse(t, target)}
	if change != nil {
		change(&cfg)
	}
	b, err := NewBytes(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serveOn gives each connection of l to talk, and then closes it.
func serveOn(t testing.TB, l net.Listener, talk func(Conn)) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				talk(conn.(Conn))
			}()
		}
	}()
}

// streamBackends returns a backend of each kind that talks so, and the URL of
// each.
func (w world) streamBackends(t testing.TB, talk func(Conn)) map[string]string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	onTCP, err1 := net.Listen("tcp", "127.0.0.1:0")
	onUnix, err2 := net.Listen("unix", socket)
	onTLS, err3 := tls.Listen("tcp", "127.0.0.1:0", w.serverTLS())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{onTCP, onUnix, onTLS} {
		serveOn(t, l, talk)
	}
	return map[string]string{
		"tcp":  "tcp://" + onTCP.Addr().String(),
		"unix": "unix:" + socket,
		"tls":  "tls://" + onTLS.Addr().String(),
	}
}

// eachStream runs f against a front for each kind of backend.
func eachStream(t *testing.T, talk func(Conn), f func(t *testing.T, w world, addr string, results <-chan error)) {
	w := newWorld(t)
	for name, target := range w.streamBackends(t, talk) {
		t.Run(name, func(t *testing.T) {
			b := newBytes(t, target, func(c *BytesConfig) { c.TLS = w.clientTLS(false) })
			addr, results := w.bytesFront(t, b)
			f(t, w, addr, results)
		})
	}
}

// The backend answers only when the client has said that it is done: a proxy
// without half-close hangs or truncates.
func TestHalfCloseByClient(t *testing.T) {
	eachStream(t, func(c Conn) {
		data, err := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes, %v", len(data), err)
	}, func(t *testing.T, w world, addr string, results <-chan error) {
		conn := w.dialRaw(t, addr)
		_, _ = conn.Write(make([]byte, 1<<20))
		_ = conn.CloseWrite()
		if got, err := io.ReadAll(conn); string(got) != "1048576 bytes, <nil>" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if err := <-results; err != nil {
			t.Error(err)
		}
	})
}

func TestHalfCloseByBackend(t *testing.T) {
	received := make(chan int, 1)
	eachStream(t, func(c Conn) {
		fmt.Fprint(c, "welcome")
		_ = c.CloseWrite()
		data, _ := io.ReadAll(c)
		received <- len(data)
	}, func(t *testing.T, w world, addr string, results <-chan error) {
		conn := w.dialRaw(t, addr)
		if got, err := io.ReadAll(conn); string(got) != "welcome" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		_, _ = conn.Write(make([]byte, 1<<20))
		_ = conn.CloseWrite()
		if n := <-received; n != 1<<20 {
			t.Errorf("backend got %d bytes", n)
		}
		if err := <-results; err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsLost(t *testing.T) {
	data := make([]byte, 8<<20+3)
	_, _ = rand.Read(data)
	eachStream(t, func(c Conn) {
		_, _ = io.Copy(c, c)
	}, func(t *testing.T, w world, addr string, _ <-chan error) {
		conn := w.dialRaw(t, addr)
		go func() {
			_, _ = conn.Write(data)
			_ = conn.CloseWrite()
		}()
		if got, err := io.ReadAll(conn); !bytes.Equal(got, data) || err != nil {
			t.Errorf("%d of %d bytes, equal %t, %v", len(got), len(data), bytes.Equal(got, data), err)
		}
	})
}

// The backend answers and closes while the client is still sending: the answer
// must arrive although writing to the backend fails.
func TestAnswerArrivesThoughBackendStoppedReading(t *testing.T) {
	answer := strings.Repeat("too much ", 10_000)
	eachStream(t, func(c Conn) {
		_, _ = io.ReadFull(c, make([]byte, 10))
		fmt.Fprint(c, answer)
		_ = c.CloseWrite()
		time.Sleep(20 * time.Millisecond) // for the answer to be read before the reset
	}, func(t *testing.T, w world, addr string, results <-chan error) {
		conn := w.dialRaw(t, addr)
		go func() { _, _ = conn.Write(make([]byte, 1<<20)) }()
		got, err := io.ReadAll(conn)
		if string(got) != answer {
			t.Errorf("got %d of %d bytes, %v", len(got), len(answer), err)
		}
		conn.Close()
		<-results
	})
}

func TestNewBytesRefusesHTTP(t *testing.T) {
	if _, err := NewBytes(BytesConfig{Target: mustParse(t, "http://a")}); err == nil {
		t.Error("no error")
	}
}
