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
	"time"

	"go.uber.org/zap"
)

// Messages about byte streams.
const msgAborted = "stream broken off"

const (
	// lingerTime and lingerBytes are how long and how much is read of a peer
	// that still sends what nobody wants any more.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// Conn is a connection whose two directions end apart, as those of *tls.Conn,
// *net.TCPConn and *net.UnixConn do.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// BytesConfig is how a byte stream backend is reached.
type BytesConfig struct {
	Target Target // of KindBytes

	// TLS is used for tls, as HTTPConfig.TLS is for https.
	TLS *tls.Config

	ConnectTimeout time.Duration // TCP and TLS together; 0: 5 s
	Log            *zap.Logger   // nil: none
}

// Bytes forwards byte streams to one backend. It is safe for concurrent use.
type Bytes struct {
	dialer dialer
	tls    *tls.Config // nil: plain
	report *reporter
}

// NewBytes returns the forwarder that cfg describes. It opens no connection.
func NewBytes(cfg BytesConfig) (*Bytes, error) {
	if cfg.Target.Kind() != KindBytes {
		return nil, fmt.Errorf("backend %q is not a byte stream backend", cfg.Target)
	}
	b := &Bytes{
		dialer: dialer{target: cfg.Target, timeout: orDefault(cfg.ConnectTimeout, defaultConnectTimeout)},
		report: newReporter(cfg.Log, cfg.Target),
	}
	if cfg.Target.TLS() {
		b.tls = clientTLS(cfg.TLS, cfg.Target)
	}
	return b, nil
}

// Forward connects to the backend and copies both ways until both directions
// have ended, then closes client. Each direction ends as its source ends it:
// where that says that it has no more to send, the other side is told so and may
// go on sending; where it fails, as by a reset, the other side is reset. (To
// crypto/tls a connection that ends between two records without close_notify
// has said that it has no more to send.)
//
// A client whose backend can't be reached gets close_notify and nothing else.
// When ctx ends, both sides are reset. Errors are already logged when Forward
// returns them; the end of a stream in both directions is none.
func (b *Bytes) Forward(ctx context.Context, client Conn) error {
	backend, err := b.connect(ctx)
	if err != nil {
		b.logDown(ctx, client, err)
		if info, ok := InfoFrom(ctx); ok && info.Unreachable != nil {
			info.Unreachable()
		}
		closeGently(client)
		return fmt.Errorf("connect to backend %q: %w", b.dialer.target, err)
	}
	defer backend.Close()
	stop := context.AfterFunc(ctx, func() {
		reset(client)
		reset(backend)
	})
	defer stop()
	if err := exchange(client, backend); err != nil {
		b.report.log.Debug(msgAborted, connFields(ctx, client.RemoteAddr().String(), err)...)
		closeGently(client)
		return err
	}
	client.Close()
	return nil
}

func (b *Bytes) logDown(ctx context.Context, client Conn, err error) {
	if ctx.Err() != nil {
		b.report.log.Debug(msgAborted, connFields(ctx, client.RemoteAddr().String(), err)...)
		return
	}
	b.report.failed(msgUnreachable, connFields(ctx, client.RemoteAddr().String(), err)...)
}

// connect opens the backend's connection, TLS included, within the timeout.
func (b *Bytes) connect(ctx context.Context) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.dialer.timeout)
	defer cancel()
	plain, err := b.dialer.dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	if b.tls == nil {
		return plain.(Conn), nil // dial's networks are tcp and unix
	}
	conn := tls.Client(plain, b.tls)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return conn, nil
}

// exchange copies both ways until both directions have ended, and returns what
// ended the first that did not end well.
func exchange(client, backend Conn) error {
	up := make(chan error, 1)
	go func() { up <- forward(backend, client) }()
	down := forward(client, backend)
	return errors.Join(<-up, down)
}

// forward copies from src to dst and passes on how src ended. If dst takes no
// more, nothing is done to src: what dst has sent before may still be on its
// way there, and the copy in that direction ends by itself, since dst is gone.
func forward(dst, src Conn) error {
	readErr, writeErr := pump(dst, src)
	switch {
	case writeErr != nil:
		return fmt.Errorf("write to %s: %w", dst.RemoteAddr(), writeErr)
	case readErr == nil:
		_ = dst.CloseWrite() // fails if dst is gone, which its own direction tells
		return nil
	default:
		reset(dst)
		return fmt.Errorf("read from %s: %w", src.RemoteAddr(), readErr)
	}
}

// pump is io.Copy, but tells which side failed. One end is always TLS, so that
// there is no splice to be had, and a TLS record is 16 KiB, so that a larger
// buffer brings nothing.
func pump(dst io.Writer, src io.Reader) (readErr, writeErr error) {
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return nil, werr
			}
		}
		switch {
		case err == io.EOF:
			return nil, nil
		case err != nil:
			return err, nil
		}
	}
}

// plainConn returns the connection below c's TLS, or c if it has none.
func plainConn(c Conn) Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		if below, ok := t.NetConn().(Conn); ok {
			return below
		}
	}
	return c
}

// closeGently closes c after all that was written to it has reached its peer.
// Closing at once would reset the connection if there is something unread, and
// then the peer may lose what it has not read itself. After a reset there is
// nothing to wait for.
func closeGently(c Conn) {
	defer c.Close()
	below := plainConn(c)
	if c.CloseWrite() != nil || below.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	if below != c {
		_ = below.CloseWrite() // an error shows in reading
	}
	_, _ = io.CopyN(io.Discard, below, lingerBytes)
}

// reset closes c so that its peer sees an error rather than an end: without
// close_notify, and over TCP by a reset.
func reset(c Conn) {
	below := plainConn(c)
	if t, ok := below.(interface{ SetLinger(sec int) error }); ok {
		_ = t.SetLinger(0) // Close is all that is left if it fails
	}
	below.Close()
}
