// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// A reset must not look like an end: what came before it may be incomplete.
func TestResetByBackendIsNoEnd(t *testing.T) {
	eachStream(t, func(c Conn) {
		fmt.Fprint(c, "half")
		_, _ = io.ReadFull(c, make([]byte, 1)) // until the client has the half
		reset(c)
	}, func(t *testing.T, w world, addr string, results <-chan error) {
		conn := w.dialRaw(t, addr)
		half := make([]byte, 4)
		if _, err := io.ReadFull(conn, half); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "x")
		rest, err := io.ReadAll(conn)
		conn.Close()
		result := <-results
		if strings.HasPrefix(t.Name(), "TestResetByBackendIsNoEnd/unix") {
			return // a unix socket knows no reset
		}
		if err == nil || len(rest) > 0 || result == nil {
			t.Errorf("got %q, %v; Forward returned %v", rest, err, result)
		}
	})
}

func TestResetByClientReachesBackend(t *testing.T) {
	ended := make(chan error, 1)
	eachStream(t, func(c Conn) {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}, func(t *testing.T, w world, addr string, results <-chan error) {
		conn := w.dialRaw(t, addr)
		fmt.Fprint(conn, "x")
		reset(conn)
		select {
		case err := <-ended:
			if err == nil && !strings.HasSuffix(t.Name(), "/unix") {
				t.Error("the backend saw a good end")
			}
		case <-time.After(10 * time.Second):
			t.Error("the backend still waits")
		}
		if err := <-results; err == nil {
			t.Error("Forward returned nil")
		}
	})
}

func TestBackendDownEndsWithCloseNotify(t *testing.T) {
	w := newWorld(t)
	silent := accepting(t, func(net.Conn) {})
	strangers := newWorld(t)
	tests := []struct{ name, target, err string }{
		{"tcp", "tcp://" + deadAddress(t), "connection refused"},
		{"unix", "unix:/nonexistent/s", "no such file"},
		{"tls-silent", "tls://" + silent, "deadline"},
		{"tls-other-authority", strangers.streamBackends(t, func(c Conn) { _, _ = io.Copy(io.Discard, c) })["tls"], "unknown authority"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log, logs := observed()
			timeout := 10 * time.Second
			if tt.err == "deadline" {
				timeout = 200 * time.Millisecond
			}
			addr, results := w.bytesFront(t, newBytes(t, tt.target, func(c *BytesConfig) {
				c.Log, c.ConnectTimeout, c.TLS = log, timeout, w.clientTLS(false)
			}))
			conn := w.dialRaw(t, addr)
			_, _ = conn.Write(make([]byte, 100_000)) // nobody reads it, and still no reset
			if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			conn.Close()
			if err := <-results; err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Forward returned %v, want %q", err, tt.err)
			}
			line := onlyWarning(t, logs)
			if line.Message != msgUnreachable || !strings.Contains(line.ContextMap()["error"].(string), tt.err) {
				t.Errorf("log %q %v", line.Message, line.ContextMap())
			}
		})
	}
}

func TestTLSBackendByName(t *testing.T) {
	w := newWorld(t)
	target := w.streamBackends(t, func(c Conn) { fmt.Fprint(c, "hello") })["tls"]
	cfg := w.clientTLS(false)
	cfg.ServerName = "elsewhere"
	addr, results := w.bytesFront(t, newBytes(t, target, func(c *BytesConfig) { c.TLS = cfg }))
	conn := w.dialRaw(t, addr)
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	conn.Close()
	if err := <-results; err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("Forward returned %v", err)
	}
}

func TestEndOfContextResetsBothSides(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	serveOn(t, l, func(c Conn) {
		fmt.Fprint(c, "hello")
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	log, logs := observed()
	b := newBytes(t, "tcp://"+l.Addr().String(), func(c *BytesConfig) { c.Log = log })
	client, server := tlsPipe(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- b.Forward(ctx, server) }()
	if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-result; err == nil {
		t.Error("Forward returned nil")
	}
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("backend read %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("client read %v", err)
	}
	for _, e := range logs.All() {
		if e.Level > zap.DebugLevel {
			t.Errorf("logged %q %v", e.Message, e.ContextMap())
		}
	}
}

// tlsPipe returns both ends of a TLS connection over loopback.
func tlsPipe(t *testing.T, w world) (client, server *tls.Conn) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", w.serverTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *tls.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			accepted <- conn.(*tls.Conn)
		}
	}()
	client = w.dialRaw(t, l.Addr().String())
	return client, <-accepted
}
