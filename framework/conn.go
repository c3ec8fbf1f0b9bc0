// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tlsd/tlsd/framework/backend"
)

// conn is an accepted connection of a Server: what lies under its TLS.
type conn struct {
	net.Conn
	listener *listener
	id, peer string
	until    time.Time // when calls to the key process have to be back
	site     *site     // that it belongs to; settled by its hello

	served  record // what it is served with
	session record // what the session that the client offered began with

	shaking atomic.Bool // no handshake has come to its end yet
	heard   atomic.Bool // the peer has sent something
	closed  sync.Once
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
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

// Close closes the connection once and takes it off the Server's list.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.closed.Do(func() {
		err = c.Conn.Close()
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
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
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
	if t, ok := c.Conn.(*net.TCPConn); ok {
		return t.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// describe tells what is known of a handshake on c. Its calls to the key process
// end when the Server cuts connections; crypto/tls would let them go on until
// their deadline.
func (c *conn) describe(hs *handshake) {
	hs.ctx, hs.until, hs.served = c.listener.server.ctx, c.until, &c.served
	hs.listener, hs.alias = c.site.cfg.Listen, c.site.cfg.Alias
	hs.named = c.site.cfg.UnknownSNI == UnknownSNIReject
	hs.id, hs.peer = c.id, c.peer
}

// info tells a backend of the connection.
func (c *conn) info() backend.Info {
	i := backend.Info{Listener: c.listener.cfg.Listen, Peer: c.peer}
	if s := c.served.Load(); s != nil {
		i.Tier, i.Builder, i.Alias, i.Generation = s.Tier, s.Builder, s.Alias, s.Generation
	}
	return i
}

// conns are the open connections of a Server.
type conns struct {
	mu  sync.Mutex
	all map[*conn]struct{} // guarded by mu
	wg  sync.WaitGroup     // counts them
}

func (s *conns) add(c *conn) {
	s.wg.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*conn]struct{}{}
	}
	s.all[c] = struct{}{}
}

func (s *conns) remove(c *conn) {
	s.mu.Lock()
	delete(s.all, c)
	s.mu.Unlock()
	s.wg.Done()
}

// close closes those that which says.
func (s *conns) close(which func(*conn) bool) {
	s.mu.Lock()
	var found []*conn
	for c := range s.all {
		if which(c) {
			found = append(found, c)
		}
	}
	s.mu.Unlock()
	for _, c := range found {
		_ = c.Close() // the peer may have been faster
	}
}

// some says whether one of them is one that which says.
func (s *conns) some(which func(*conn) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		if which(c) {
			return true
		}
	}
	return false
}

func (s *conns) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
