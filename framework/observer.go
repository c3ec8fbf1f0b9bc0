// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"time"
)

// Observer is told what happens at a [Server] and its [Keys], for metrics and
// the like. A function that is nil is not called. The others are called on the
// path of connections, by many goroutines at once: they have to be fast.
type Observer struct {
	// Handshake is told of each handshake that has ended, well or not.
	Handshake func(HandshakeEvent)
	// Selection is told of each time a credential was looked for; reused means
	// that the front answered from what it knew.
	Selection func(reused bool, err error)
	// Signature is told of each signature that the key process was asked for.
	Signature func(SignatureEvent)
	// Opened and Closed are told of each connection that was accepted.
	Opened func(listener string)
	Closed func(ConnectionEvent)
	// Dropped is told of each connection that a limit kept out, by the name of
	// the limit as the configuration has it.
	Dropped func(listener, limit string)
	// Reloaded is told of each reading of what a reload reads: "keystores",
	// "trust", "crl", "config".
	Reloaded func(what string, err error)
}

// HandshakeEvent tells of a handshake that has ended.
type HandshakeEvent struct {
	Listener string
	Result   string // ok, or a short word of few: see Reason
	Reason   string // few distinct ones: timeout, no_credential, unknown_name, plugin, revoked, client_certificate, protocol, closed, probe, …; empty: ok
	Duration time.Duration
	State    *tls.ConnectionState // as far as it got; not to be changed or kept
	Alias    string               // served with; empty: none
}

// SignatureEvent tells of a signature.
type SignatureEvent struct {
	Builder  int
	Alias    string
	Duration time.Duration
	Err      error // nil: good; keymanager.ErrNotHandshake: the message was refused
}

// ConnectionEvent tells of a connection that has ended.
type ConnectionEvent struct {
	Listener string
	In, Out  uint64 // bytes from and to the client, as they were on the wire
	Duration time.Duration
	Result   string // closed, idle, lifetime, cut, …
}
