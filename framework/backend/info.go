// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"
)

// Info is what is known of the TLS connection that a request came by. The
// server that terminates it passes it on by [WithInfo].
type Info struct {
	Tier       string // name of the key manager's tier
	Builder    int    // index of the keystore builder, from 0; meaningless where Alias is empty
	Alias      string // entry that served the handshake; empty: none was asked for, since the session was resumed
	Generation uint64 // of the view that the entry was chosen from
	Listener   string // the listen value, for the log
	Peer       string // the client's address

	// State is the state of the connection. It is used where the request has
	// none of its own, which is so if the server was given a connection that
	// wraps a *tls.Conn.
	State tls.ConnectionState

	// Awaits is called when a request has been read to its end and waits for
	// the backend, for d at most, and Answered when that is over: each once for
	// a request, or neither, and they may be called at the same time. Unreachable
	// is called before a client is turned away since the backend of its bytes
	// can't be reached. Any may be nil.
	Awaits      func(d time.Duration)
	Answered    func()
	Unreachable func()
}

type infoKey struct{}

// WithInfo returns a context that carries info.
func WithInfo(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// InfoFrom returns the Info that ctx carries, and whether it carries one.
func InfoFrom(ctx context.Context) (Info, bool) {
	info, ok := ctx.Value(infoKey{}).(Info)
	return info, ok
}

// connState returns the state of r's TLS connection, or nil if it came by none.
func connState(r *http.Request) *tls.ConnectionState {
	if r.TLS != nil {
		return r.TLS
	}
	if info, ok := InfoFrom(r.Context()); ok && info.State.HandshakeComplete {
		return &info.State
	}
	return nil
}

// clientChain returns the verified chain of r's client certificate, leaf first,
// or nil where there is none. What the client sent and nobody verified does not
// count.
func clientChain(r *http.Request) []*x509.Certificate {
	state := connState(r)
	if state == nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	return state.VerifiedChains[0]
}
