// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"net"
	"sync/atomic"
)

// Served says which credential a connection was served with.
type Served struct {
	Tier       string
	Builder    int    // index of the keystore, from 0
	Alias      string // entry name as stored
	Generation uint64 // of the view that it was chosen from
}

// servedKey is the context key of a *record.
type servedKey struct{}

// record is where a handshake leaves what it was served with; nil until then.
type record = atomic.Pointer[Served]

// WithServed returns a context for tls.Conn.HandshakeContext of a server; after
// the handshake [ServedBy] tells from it, or from a child, what the connection was
// served with. Each connection needs a context of its own. Handshakes as a
// client, such as a handler's with its request's context, leave it alone.
func WithServed(ctx context.Context) context.Context {
	return context.WithValue(ctx, servedKey{}, new(record))
}

// ConnContext is for http.Server.ConnContext: requests of a TLS connection
// then tell [ServedBy] from their context.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if own := connOf(c); own != nil {
		return context.WithValue(ctx, servedKey{}, &own.served)
	}
	return WithServed(ctx)
}

// ServedBy returns what the connection of ctx was served with. It reports false
// where the context comes neither from [WithServed] nor from [ConnContext], or
// no credential was chosen.
//
// A [Server] tells of resumed connections what their session began with. A
// server that only uses [Keys.TLSConfig] can't: in TLS 1.3 a resumed connection
// reports false, in TLS 1.2 what a full handshake would have been served with.
func ServedBy(ctx context.Context) (Served, bool) {
	r, ok := ctx.Value(servedKey{}).(*record)
	if !ok {
		return Served{}, false
	}
	s := r.Load()
	if s == nil {
		return Served{}, false
	}
	return *s, true
}
