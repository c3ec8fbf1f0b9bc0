// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// shaken notes how the handshake of c ended, and tells of it.
func (c *conn) shaken(client *tls.Conn, err error) {
	state := client.ConnectionState()
	c.tls, c.state = client, &state
	if err != nil {
		c.fault = c.faultOf(err)
		c.settle(ConnectionFailed)
	} else if state.DidResume {
		c.served.Store(c.session.Load())
	}
	c.shaking.Store(false)
	server := c.listener.server
	server.conns.shaken()
	if server.observer.Handshake == nil {
		return
	}
	e := HandshakeEvent{
		Listener: c.listener.cfg.Listen, Result: HandshakeOK, Reason: c.fault.reason,
		Duration: time.Since(c.began), State: c.state,
	}
	switch {
	case c.fault.reason == ReasonProbe:
		e.Result = HandshakeProbe
	case err != nil:
		e.Result = HandshakeFailed
	}
	if s := c.served.Load(); s != nil {
		e.Alias = s.Alias
	}
	server.observer.Handshake(e)
}

// tell tells of the end of c: the Observer, and the log named access by one line.
func (c *conn) tell() {
	server := c.listener.server
	lasted := time.Since(c.began)
	if server.observer.Closed != nil {
		server.observer.Closed(ConnectionEvent{
			Listener: c.listener.cfg.Listen, In: c.in.Load(), Out: c.out.Load(), Duration: lasted, Result: c.ending(),
		})
	}
	e := server.access.Check(zap.DebugLevel, "connection ended")
	if e == nil {
		return
	}
	fields := append([]zap.Field{zap.String(logging.FieldListener, c.listener.cfg.Listen)}, c.fields()...)
	if c.requests.Load() > 0 {
		fields = append(fields, zap.Uint64("requests", c.requests.Load()))
	}
	e.Write(append(fields,
		zap.Uint64("bytes_in", c.in.Load()), zap.Uint64("bytes_out", c.out.Load()),
		zap.Duration("duration", lasted), zap.String("result", c.ending()))...)
}

// ending returns what c ended by. net/http tells nobody that it closes a
// connection that was idle between requests.
func (c *conn) ending() string {
	if r := c.result.Load(); r != nil {
		return *r
	}
	silent := time.Since(c.began) - time.Duration(c.spoke.Load())
	if idle := c.limits.Idle; idle > 0 && silent >= idle && http.ConnState(c.phase.Load()) == http.StateIdle {
		return ConnectionIdle
	}
	return ConnectionClosed
}

// fields are those of c in log lines. Of a handshake that is still under way
// nothing is known.
func (c *conn) fields() []zap.Field {
	fields := []zap.Field{zap.String(logging.FieldConn, c.id), zap.String(logging.FieldPeer, c.peer)}
	if c.shaking.Load() {
		return fields
	}
	fields = append(fields, stateFields(c.state)...)
	if s := c.served.Load(); s != nil {
		fields = append(fields,
			zap.String(logging.FieldTier, s.Tier),
			zap.Int(logging.FieldBuilder, s.Builder),
			zap.String(logging.FieldAlias, s.Alias),
			zap.Uint64(logging.FieldGeneration, s.Generation))
	}
	if c.fault.err != nil {
		fields = append(fields, zap.String(logging.FieldReason, c.fault.reason), zap.Error(c.fault.err))
	}
	return fields
}

// stateFields are what TLS knows of a connection.
func stateFields(state *tls.ConnectionState) []zap.Field {
	fields := []zap.Field{zap.String(logging.FieldServerName, state.ServerName)}
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
	if len(state.PeerCertificates) > 0 {
		fields = append(fields, zap.String("client_subject", state.PeerCertificates[0].Subject.String()))
	}
	return fields
}
