// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/backend"
	"github.com/tlsd/tlsd/logging"
)

// listener serves TLS on one address.
type listener struct {
	server  *Server
	cfg     Listener // as it was first: of what a reload may change route tells
	ln      net.Listener
	log     *zap.Logger
	route   atomic.Pointer[route] // replaced as a whole by a reload
	tickets ticketKeys
	handed  *handed // takes connections to web
	web     *http.Server

	prefix   string        // of connection ids
	count    atomic.Uint64 // connections, for their ids
	accepted onceASecond   // lines about accepting that failed
	failures limitedLines  // about handshakes that failed, by reason
	full     limitedLines  // about connections that were kept out, by limit
}

const (
	minBackOff = 5 * time.Millisecond
	maxBackOff = time.Second
	// alertGrace is what is left of a handshake's time to send an alert in,
	// when a call to the key process has used up all the rest.
	alertGrace = 500 * time.Millisecond
)

// start begins to serve.
func (l *listener) start() {
	l.server.serving.Go(func() { _ = l.web.Serve(l.handed) }) // returns when handed is closed
	l.server.accepting.Go(func() { l.accept() })
	l.log.Info("listening", zap.Stringer("address", l.ln.Addr()), zap.String("backend", l.cfg.Backend))
}

// finish lets requests under way come to their end, until ctx ends.
func (l *listener) finish(ctx context.Context) {
	l.awaitFirst(ctx)
	_ = l.web.Shutdown(ctx) // its error is that of ctx
}

// awaitFirst gives clients that were accepted a moment ago time for their first
// request. net/http's Shutdown would read it and hang up.
func (l *listener) awaitFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstGrace)
	defer cancel()
	unasked := func(c *conn) bool {
		return l.owns(c) && (c.shaking.Load() || c.site != nil && c.site.handler != nil && c.requests.Load() == 0)
	}
	for ctx.Err() == nil && l.server.conns.some(unasked) {
		time.Sleep(firstTick)
	}
}

const (
	firstGrace = 5 * time.Second // as long as net/http takes a connection for new
	firstTick  = 5 * time.Millisecond
)

// stop ends what start began; connections are closed by the Server.
func (l *listener) stop() {
	_ = l.web.Close()
	_ = l.handed.Close() // web closes it only if it served
	_ = l.route.Load().close()
}

// accept hands each connection to a goroutine until the listener is closed. A
// failure, such as a lack of file descriptors, is waited out: what is being
// served goes on, and its end is what makes room.
func (l *listener) accept() {
	backOff := minBackOff
	for {
		raw, err := l.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.acceptFailed(err)
			time.Sleep(backOff)
			backOff = min(2*backOff, maxBackOff)
			continue
		}
		backOff = minBackOff
		if c := l.admit(raw); c != nil {
			l.server.handshakes.Go(func() { l.handshake(c) })
		}
	}
}

func (l *listener) acceptFailed(err error) {
	if dropped, ok := l.accepted.pass(); ok {
		l.log.Warn("accept failed", zap.Error(err), zap.Int64("lines_dropped", dropped))
	}
}

// admit puts a new connection on the Server's list, or closes it and returns nil
// where a limit is reached.
func (l *listener) admit(raw net.Conn) *conn {
	limits, now := l.server.now.Load().cfg.Limits, time.Now()
	timeout := limits.HandshakeTimeout
	c := &conn{
		Conn:     raw,
		listener: l,
		limits:   limits,
		id:       l.prefix + strconv.FormatUint(l.count.Add(1), 36),
		peer:     raw.RemoteAddr().String(),
		ip:       clientIP(raw.RemoteAddr()),
		began:    now,
		until:    now.Add(timeout - min(alertGrace, timeout/4)),
	}
	c.shaking.Store(true)
	if limit := l.server.conns.add(c); limit != "" {
		l.drop(c, limit)
		return nil
	}
	_ = raw.SetDeadline(now.Add(timeout)) // a connection that is closed already shows itself at the first read
	if l.server.observer.Opened != nil {
		l.server.observer.Opened(l.cfg.Listen)
	}
	return c
}

// drop closes a connection that a limit keeps out, before a word: an alert would
// have to wait for the client's hello, and so be what the limit is to save. It is
// reset, so that no port stays taken on this side.
func (l *listener) drop(c *conn, limit string) {
	_ = c.SetLinger(0) // Close is all that is left if it fails
	_ = c.Conn.Close()
	if l.server.observer.Dropped != nil {
		l.server.observer.Dropped(l.cfg.Listen, limit)
	}
	if dropped, ok := l.full.pass(limit); ok {
		l.log.Warn("connection refused: a limit is reached", zap.String("limit", "limits."+limit),
			zap.String(logging.FieldPeer, c.peer), zap.Int64("refused_meanwhile", dropped))
	}
}

// handshake does the handshake of c and hands it on.
func (l *listener) handshake(c *conn) {
	client := tls.Server(c, l.route.Load().terminate(c, l.tickets.current()))
	// The deadline of c bounds this. A context that ends would close c at once,
	// and no alert could say why.
	err := client.Handshake()
	c.shaken(client, err)
	if err != nil {
		l.refused(c, err)
		c.closeGently()
		return
	}
	_ = c.SetDeadline(time.Time{})
	if e := l.log.Check(zap.DebugLevel, "connection"); e != nil {
		e.Write(c.fields()...)
	}
	l.serve(c)
}

// serve hands c on to its backend.
func (l *listener) serve(c *conn) {
	if c.site.handler != nil {
		c.watch()
		l.handed.put(c.tls)
		return
	}
	info := c.info()
	info.State = *c.state
	ctx, cancel := context.WithCancel(l.server.ctx)
	c.cancel = cancel
	c.watch()
	l.server.serving.Go(func() {
		defer cancel()
		defer c.Close()
		_ = c.site.bytes.Forward(backend.WithInfo(ctx, info), c.tls) // it has logged its error
	})
}

// refused logs a handshake that failed: of each reason one a second for whoever
// wonders why clients stay away, and the rest at debug. Connections that come
// and go without a word are probes of a load balancer, or of a browser that
// expects to need them.
func (l *listener) refused(c *conn, err error) {
	if !c.heard.Load() {
		l.log.Debug("connection without a hello", c.fields()...)
		return
	}
	if h := (tls.RecordHeaderError{}); errors.As(err, &h) && h.Conn != nil && l.route.Load().web() {
		answerPlaintext(h)
	}
	level := zap.DebugLevel
	dropped, ok := l.failures.pass(c.fault.reason)
	if ok {
		level = zap.InfoLevel
	}
	if e := l.log.Check(level, "handshake failed"); e != nil {
		fields := c.fields()
		if dropped > 0 {
			fields = append(fields, zap.Int64("failed_meanwhile", dropped))
		}
		e.Write(fields...)
	}
}
