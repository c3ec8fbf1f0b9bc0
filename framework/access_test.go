// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/logging"
)

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	in, out *atomic.Uint64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.Add(uint64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out.Add(uint64(n))
	return n, err
}

// TestAccessLog: one line at a connection's end, with what the Observer is told.
func TestAccessLog(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	w := &witness{}
	s := serve(t, Config{Log: zap.New(core), Listeners: []Listener{{Backend: requests(t)}}, Observer: w.observer()})
	var in, out atomic.Uint64
	raw, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(counted{raw, &in, &out}, clientOf(s.root, "a.test"))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(err)
	}
	raw.Close()
	e := w.await(t, 0)
	if e.Result != ConnectionClosed || e.In != out.Load() || e.Out != in.Load() || e.Listener != "127.0.0.1:0" {
		t.Errorf("%+v, want %d bytes in and %d out", e, out.Load(), in.Load())
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	lines := logs.FilterMessage("connection ended").All()
	if len(lines) != 1 || lines[0].LoggerName != logging.Access || lines[0].Level != zapcore.DebugLevel {
		t.Fatalf("lines: %+v", lines)
	}
	m := lines[0].ContextMap()
	for field, want := range map[string]any{
		logging.FieldListener: "127.0.0.1:0", logging.FieldTier: "fake", logging.FieldAlias: "P256", logging.FieldServerName: "a.test",
		"version": "TLS 1.3", "requests": uint64(2), "bytes_in": e.In, "bytes_out": e.Out, "result": ConnectionClosed,
	} {
		if m[field] != want {
			t.Errorf("%s = %v, want %v", field, m[field], want)
		}
	}
	if len(w.handshakes) != 1 || w.handshakes[0].Result != HandshakeOK || w.handshakes[0].Alias != "P256" ||
		w.handshakes[0].State.Version != tls.VersionTLS13 || w.open != 0 {
		t.Errorf("handshakes %+v, %d open", w.handshakes, w.open)
	}
}

// TestResults of connections that end in other ways.
func TestResults(t *testing.T) {
	for result, tt := range map[string]struct {
		backend func(t testing.TB) string
		end     func(*running, *tls.Conn)
	}{
		ConnectionClosed:      {echo, func(_ *running, c *tls.Conn) { c.Close() }},
		ConnectionUnreachable: {func(testing.TB) string { return "tcp://127.0.0.1:1" }, func(_ *running, c *tls.Conn) { _, _ = io.Copy(io.Discard, c) }},
		ConnectionReset: {echo, func(_ *running, c *tls.Conn) {
			_ = c.NetConn().(*net.TCPConn).SetLinger(0)
			c.NetConn().Close()
		}},
		ConnectionCut: {echo, func(s *running, c *tls.Conn) { _ = s.Close() }},
	} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			s := serve(t, Config{Listeners: []Listener{{Backend: tt.backend(t)}}, Observer: w.observer()})
			c, err := s.dial(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			tt.end(s, c)
			if got := w.await(t, 0); got.Result != result {
				t.Errorf("%+v, want %s", got, result)
			}
		})
	}
}
