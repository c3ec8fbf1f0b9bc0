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
	// the limit as the configuration has it: connections, connections_per_ip,
	// handshakes.
	Dropped func(listener, limit string)
	// Reloaded is told of each reading of what a reload reads: "keystores",
	// "trust", "crl", "config".
	Reloaded func(what string, err error)
}

// Reason is why a handshake failed, in one word of few.
type Reason = string

// Values of Reason.
const (
	ReasonProbe             Reason = "probe"              // the peer connected and went without a word
	ReasonClosed            Reason = "closed"             // the peer went in the midst of it
	ReasonTimeout           Reason = "timeout"            // handshake_timeout is over
	ReasonProtocol          Reason = "protocol"           // what the peer sent is no TLS, or has nothing in common with what is served here
	ReasonClientAlert       Reason = "client_alert"       // the peer refused, for instance our certificate
	ReasonClientCertificate Reason = "client_certificate" // the peer's certificate is missing or not trusted
	ReasonRevoked           Reason = "revoked"            // it is revoked
	ReasonCRLExpired        Reason = "crl_expired"        // the list that would say so is out of date
	ReasonNoCredential      Reason = "no_credential"      // no certificate fits the peer: alert 40
	ReasonUnknownName       Reason = "unknown_name"       // no certificate carries the server name, and unknown_sni is reject: alert 112
	ReasonPlugin            Reason = "plugin"             // the key process failed: alert 80
)

// Values of HandshakeEvent.Result.
const (
	HandshakeOK     = "ok"
	HandshakeFailed = "failed"
	HandshakeProbe  = "probe" // there was none: see ReasonProbe
)

// HandshakeEvent tells of a handshake that has ended.
type HandshakeEvent struct {
	Listener string
	Result   string // HandshakeOK, HandshakeFailed or HandshakeProbe
	Reason   Reason // empty: ok
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

// Values of ConnectionEvent.Result.
const (
	ConnectionClosed      = "closed"      // by either side, in good order
	ConnectionReset       = "reset"       // broken off by either side
	ConnectionFailed      = "failed"      // its handshake did
	ConnectionUnreachable = "unreachable" // the backend is, of bytes
	ConnectionIdle        = "idle"        // limits.idle was over
	ConnectionLifetime    = "lifetime"    // limits.lifetime was over
	ConnectionCut         = "cut"         // the Server ended
)

// ConnectionEvent tells of a connection that has ended.
type ConnectionEvent struct {
	Listener string
	In, Out  uint64 // bytes from and to the client, as they were on the wire
	Duration time.Duration
	Result   string // one of those above
}
