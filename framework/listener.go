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
	tickets *tls.Config           // holds the session ticket keys, which outlive reloads
	handed  *handed               // takes connections to web
	web     *http.Server

	prefix   string        // of connection ids
	count    atomic.Uint64 // connections, for their ids
	probes   atomic.Uint64 // connections that ended before they said a word
	accepted onceASecond   // lines about accepting that failed
	failures onceASecond   // lines about handshakes that failed
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
	_ = l.web.Shutdown(ctx) // its error is that of ctx
}

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
		c := l.admit(raw)
		l.server.handshakes.Go(func() { l.handshake(c) })
	}
}

func (l *listener) acceptFailed(err error) {
	if dropped, ok := l.accepted.pass(); ok {
		l.log.Warn("accept failed", zap.Error(err), zap.Int64("lines_dropped", dropped))
	}
}

// admit puts a new connection on the Server's list.
func (l *listener) admit(raw net.Conn) *conn {
	timeout := l.server.now.Load().cfg.Limits.HandshakeTimeout
	ends := time.Now().Add(timeout)
	c := &conn{
		Conn:     raw,
		listener: l,
		id:       l.prefix + strconv.FormatUint(l.count.Add(1), 36),
		peer:     raw.RemoteAddr().String(),
		until:    ends.Add(-min(alertGrace, timeout/4)),
	}
	c.shaking.Store(true)
	_ = raw.SetDeadline(ends) // a connection that is closed already shows itself at the first read
	l.server.conns.add(c)
	return c
}

// handshake does the handshake of c and hands it on.
func (l *listener) handshake(c *conn) {
	client := tls.Server(c, l.route.Load().terminate(c, l.tickets))
	// The deadline of c bounds this. A context that ends would close c at once,
	// and no alert could say why.
	err := client.Handshake()
	c.shaking.Store(false)
	if err != nil {
		l.refused(c, client, err)
		c.closeGently()
		return
	}
	_ = c.SetDeadline(time.Time{})
	state := client.ConnectionState()
	if state.DidResume {
		c.served.Store(c.session.Load())
	}
	if e := l.log.Check(zap.DebugLevel, "connection"); e != nil {
		e.Write(describe(c, &state)...)
	}
	if c.site.handler != nil {
		l.handed.put(client)
		return
	}
	info := c.info()
	info.State = state
	l.server.serving.Go(func() {
		defer c.Close()
		c.site.bytes.Forward(backend.WithInfo(l.server.ctx, info), client)
	})
}

// refused logs a handshake that failed: one a second for whoever wonders why
// clients stay away, and the rest at debug. Connections that come and go without
// a word are probes of a load balancer.
func (l *listener) refused(c *conn, client *tls.Conn, err error) {
	if !c.heard.Load() {
		l.probes.Add(1)
		l.log.Debug("connection without a hello", zap.String(logging.FieldConn, c.id), zap.String(logging.FieldPeer, c.peer))
		return
	}
	if h := (tls.RecordHeaderError{}); errors.As(err, &h) && h.Conn != nil && l.route.Load().web() {
		answerPlaintext(h)
	}
	level := zap.DebugLevel
	dropped, ok := l.failures.pass()
	if ok {
		level = zap.InfoLevel
	}
	if e := l.log.Check(level, "handshake failed"); e != nil {
		state := client.ConnectionState()
		fields := append(describe(c, &state), zap.Error(err))
		if dropped > 0 {
			fields = append(fields, zap.Int64("failed_meanwhile", dropped))
		}
		e.Write(fields...)
	}
}

// describe returns the fields of a connection's log line.
func describe(c *conn, state *tls.ConnectionState) []zap.Field {
	fields := []zap.Field{
		zap.String(logging.FieldConn, c.id),
		zap.String(logging.FieldPeer, c.peer),
		zap.String(logging.FieldServerName, state.ServerName),
	}
	if state.Version != 0 {
		fields = append(fields, zap.String("version", tls.VersionName(state.Version)))
	}
	if state.HandshakeComplete {
		fields = append(fields,
			zap.String("suite", tls.CipherSuiteName(state.CipherSuite)),
			zap.Stringer("group", state.CurveID),
			zap.String("alpn", state.NegotiatedProtocol),
			zap.Bool("resumed", state.DidResume))
	}
	if s := c.served.Load(); s != nil {
		fields = append(fields,
			zap.String(logging.FieldTier, s.Tier),
			zap.Int(logging.FieldBuilder, s.Builder),
			zap.String(logging.FieldAlias, s.Alias),
			zap.Uint64(logging.FieldGeneration, s.Generation))
	}
	if len(state.PeerCertificates) > 0 {
		fields = append(fields, zap.String("client_subject", state.PeerCertificates[0].Subject.String()))
	}
	return fields
}
