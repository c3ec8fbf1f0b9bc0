// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tlsd/tlsd/framework/backend"
)

// conn is an accepted connection of a Server: what lies under its TLS.
type conn struct {
	net.Conn
	listener *listener
	limits   Limits // as they were when it was accepted
	id, peer string
	ip       netip.Addr // that it is counted by; not valid: by none
	began    time.Time
	until    time.Time // when calls to the key process have to be back
	site     *site     // that it belongs to; settled by its hello

	served  record // what it is served with
	session record // what the session that the client offered began with

	shaking atomic.Bool // no handshake has come to its end yet; what follows is set before it becomes false
	tls     *tls.Conn
	state   *tls.ConnectionState // as far as the handshake got
	fault   fault                // why it failed

	heard    atomic.Bool // the peer has sent something
	tail     tail        // the last that it sent in its handshake
	in, out  atomic.Uint64
	requests atomic.Uint64 // by HTTP
	result   atomic.Pointer[string]
	closed   sync.Once

	clock
	cancel context.CancelFunc // of the backend's work; nil: none
}

// connOf returns the Server's own connection under c, or nil.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

// Read notes that the peer said something, which tells a client from a probe
// that only looks whether the port is open.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.in.Add(uint64(n))
		c.touch(true)
		if !c.heard.Load() {
			c.heard.Store(true)
		}
		if c.shaking.Load() {
			c.tail.add(b[:n])
		}
	}
	c.noteReset(err)
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out.Add(uint64(n))
	c.touch(false)
	c.noteReset(err)
	return n, err
}

func (c *conn) noteReset(err error) {
	if err != nil && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		c.settle(ConnectionReset)
	}
}

// settle says what c ends by. The first to say so is right: what comes after is
// its consequence.
func (c *conn) settle(result string) { c.result.CompareAndSwap(nil, &result) }

// Close closes the connection once, takes it off the Server's list and tells of
// its end.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.closed.Do(func() {
		err = c.Conn.Close()
		c.stop()
		c.tell()
		c.listener.server.conns.remove(c)
	})
	return err
}

// closeGently closes the connection after an alert. A plain Close would reset it
// where the peer has sent more than was read, and the reset may overtake the
// alert; so the peer gets a moment to see it and to hang up.
func (c *conn) closeGently() {
	defer c.Close()
	if !c.heard.Load() || c.CloseWrite() != nil {
		return
	}
	// Not by a deadline, which whoever else reads from c may change.
	enough := time.AfterFunc(lingerTime, func() { _ = c.Conn.Close() })
	defer enough.Stop()
	_ = c.SetReadDeadline(time.Time{})
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// lingerTime and lingerBytes bound how long a refused peer is listened to.
const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// CloseWrite ends the sending side, for backends that close one way at a time.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetLinger makes Close reset the connection if sec is 0, where it is TCP.
func (c *conn) SetLinger(sec int) error {
	c.settle(ConnectionReset)
	if t, ok := c.Conn.(*net.TCPConn); ok {
		return t.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// describe tells what is known of a handshake on c. Its calls to the key process
// end when the Server cuts connections; crypto/tls would let them go on until
// their deadline.
func (c *conn) describe(hs *handshake) {
	hs.ctx, hs.until, hs.served, hs.fault = c.listener.server.ctx, c.until, &c.served, &c.fault
	hs.listener, hs.alias = c.site.cfg.Listen, c.site.cfg.Alias
	hs.named = c.site.cfg.UnknownSNI == UnknownSNIReject
	hs.id, hs.peer = c.id, c.peer
}

// info tells a backend of the connection.
func (c *conn) info() backend.Info {
	i := backend.Info{Listener: c.listener.cfg.Listen, Peer: c.peer, Awaits: c.await, Answered: c.answered, Unreachable: c.unreachable}
	if s := c.served.Load(); s != nil {
		i.Tier, i.Builder, i.Alias, i.Generation = s.Tier, s.Builder, s.Alias, s.Generation
	}
	return i
}

func (c *conn) unreachable() { c.settle(ConnectionUnreachable) }
