// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// handshake is what the front knows of one handshake besides its hello.
type handshake struct {
	ctx    context.Context // ends when nobody waits for the handshake any more
	until  time.Time       // when it will be ended; zero: unknown
	served *record         // where to leave what it was served with; nil: nowhere
	fault  *fault          // where to leave why it can't succeed; nil: nowhere

	listener string
	alias    string // demanded by the listener or host; empty: any
	named    bool   // a server name that the certificate carries is demanded
	resumes  bool   // the client may resume a session of TLS 1.2
	id, peer string // of the connection
}

// handshakeOf returns what is known of the handshake that info belongs to: all
// where the connection is a Server's own.
func handshakeOf(info *tls.ClientHelloInfo) handshake {
	hs := handshake{ctx: info.Context()}
	if hs.ctx == nil { // info was made by hand
		hs.ctx = context.Background()
	}
	hs.served, _ = hs.ctx.Value(servedKey{}).(*record)
	if info.Conn == nil {
		return hs
	}
	if own := connOf(info.Conn); own != nil {
		own.describe(&hs)
	} else if addr := info.Conn.RemoteAddr(); addr != nil {
		hs.peer = addr.String()
	}
	return hs
}

// bounded returns a context for one call to the key process: it ends with the
// handshake, or after timeout where nobody knows when that is.
func (hs *handshake) bounded(timeout time.Duration) (context.Context, context.CancelFunc) {
	if !hs.until.IsZero() {
		return context.WithDeadline(hs.ctx, hs.until)
	}
	if _, ok := hs.ctx.Deadline(); ok {
		return hs.ctx, func() {}
	}
	return context.WithTimeout(hs.ctx, timeout)
}

// note leaves what the handshake is served with.
func (hs *handshake) note(tier string, cred *keymanager.Credential) {
	if hs.served != nil {
		hs.served.Store(&Served{tier, cred.Builder, cred.Alias, cred.Generation})
	}
}

// fail leaves why the handshake can't succeed: crypto/tls may only get to know
// that it can't.
func (hs *handshake) fail(reason Reason, err error) {
	if hs.fault != nil {
		*hs.fault = fault{reason, err}
	}
}

// fields are those of log lines about the handshake.
func (hs *handshake) fields() []zap.Field {
	return []zap.Field{
		zap.String(logging.FieldListener, hs.listener),
		zap.String(logging.FieldConn, hs.id),
		zap.String(logging.FieldPeer, hs.peer),
	}
}
