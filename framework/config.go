// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package framework is the TLS server as a library: keys live in a key manager
// plugin, another process, and this one only terminates TLS with them.
//
// [Open] starts the key manager and returns [Keys], whose TLSConfig and
// ClientConfig give a *tls.Config for net/http, gRPC or anything that takes
// one. [NewServer] runs listeners that terminate TLS and forward to backends;
// it is what the tlsd daemon runs.
//
// A program that embeds tiers calls plugin.Main with them first in main.
package framework

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

// Config is everything that a key manager and a server are made of. The zero
// value of each field has the meaning that its comment states. Once it
// was used, what its slices hold must not be changed, since a reload reads them.
type Config struct {
	KeyManager string            // tier by name, or unix:PATH of an endpoint; empty: the only one of Tiers, or "pkixcached", "pkix", "sunx509" as present
	Tiers      []keymanager.Tier // built in: what plugin.Main was given
	Plugins    []Plugin          // external executables
	Executable string            // runs the tier from this executable instead of re-executing the caller
	InProcess  bool              // runs the tier in the caller's process: not isolated, for tests

	Keystores []keymanager.Source
	Options   keymanager.Options // Aliases is filled in from Listeners by NewServer

	Listeners []Listener // NewServer only; none: one with its defaults

	RunDir      string        // for sockets; empty: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/tlsd, $TMPDIR, /tmp, the first that is writable
	PluginWait  time.Duration // how long a handshake waits for the key process; 0: 2 s
	SignTimeout time.Duration // bounds Select and Sign where a handshake's context has no deadline; 0: 5 s
	Limits      Limits
	DrainDelay  time.Duration // how long connections are still accepted after Run was told to end, and not ready
	Drain       time.Duration // how long open connections may take to finish after the listeners closed; 0: 30 s
	Isolation   Isolation
	Self        []plugin.Finding // what the calling process says of itself beside what isolates the key process

	Observer Observer // is told what happens
	Bind     BindFunc // listens on an address; nil: the machine is asked

	Log       *zap.Logger       // nil: none
	LogLevels map[string]string // by logger name, as the key process is told them; "" is the root
}

// Plugin is an external key manager executable.
type Plugin struct {
	Name     string
	Path     string
	SHA256   string          // hex; empty: not checked, with a warning
	Settings json.RawMessage // reaches the tier as Env.Settings
}

// BindFunc returns a listener for a [Listener.Listen], which the Server closes.
// It is for sockets that were inherited.
type BindFunc func(ctx context.Context, address string) (net.Listener, error)

// Isolation says what becomes of a key process that is less isolated than it
// could be.
type Isolation string

// Values of Isolation. The empty value is IsolationReport.
const (
	IsolationReport  Isolation = "report"  // a line of the log says what is in force
	IsolationRequire Isolation = "require" // the start fails
)

// Limits bound what peers may cost. Connections over a limit are closed before
// they say a word.
type Limits struct {
	HandshakeTimeout time.Duration // 0: 10 s
	Connections      int           // open at once, over all listeners; 0: no limit
	ConnectionsPerIP int           // of one client address; 0: no limit
	Handshakes       int           // under way at once; 0: no limit
	Idle             time.Duration // a connection without a byte in either direction; 0: no limit
	Lifetime         time.Duration // a connection, from its beginning; 0: no limit
}

// ClientAuth is what a listener asks of its clients.
type ClientAuth string

// Values of ClientAuth. The empty value is ClientAuthNone.
const (
	ClientAuthNone     ClientAuth = "none"
	ClientAuthOptional ClientAuth = "optional"
	ClientAuthRequire  ClientAuth = "require"
)

// TrustStore is a file with trusted certificates: PEM, PKCS#12 or JKS. The key
// process reads it, since JVM users keep keys and trusted certificates in one
// file.
type TrustStore struct {
	Path     string
	Type     string // as keymanager.Source.Type
	Password keymanager.PasswordRef
}

// Listener is one address that TLS is served on and where it goes.
type Listener struct {
	Listen  string // host:port or unix:PATH; empty: 127.0.0.1:8443
	Backend string // URL: http, https, h2c, http+unix, tcp, tls, unix, builtin:hello; empty: builtin:hello

	BackendTLS     BackendTLS
	ConnectTimeout time.Duration // 0: 5 s
	FirstByte      time.Duration // HTTP: until the response header; 0: 60 s

	MinVersion, MaxVersion uint16   // 0: TLS 1.2, none
	CipherSuites           []uint16 // TLS 1.2 only, as crypto/tls; nil: its defaults
	Groups                 []uint16 // tls.CurveID values; nil: crypto/tls's defaults
	ALPN                   []string // nil: h2 and http/1.1 for HTTP backends, none for byte backends

	UnknownSNI UnknownSNI
	Alias      string // serve only this entry

	ClientAuth     ClientAuth
	ClientCA       TrustStore
	ClientCRL      string     // PEM or DER file with the revocation lists of the client CAs; empty: none
	CRLExpired     CRLExpired // of what a list says after its nextUpdate
	ClientHeaders  ClientHeaders
	TrustedProxies []netip.Prefix // whose X-Forwarded-* are believed

	Hosts []Host // what is other for some server names
}

// UnknownSNI is what becomes of clients that name no server, or one that the
// certificate chosen for them doesn't carry.
type UnknownSNI string

// Values of UnknownSNI. The empty value is UnknownSNIDefault.
const (
	UnknownSNIDefault UnknownSNI = "default" // they are served with what was chosen
	UnknownSNIReject  UnknownSNI = "reject"  // alert unrecognized_name
)

// Host is what is other at a [Listener] for clients that name one of Names as
// their server (SNI): the exact name counts before a wildcard, and what no host
// names is the listener's own. The zero value of any other field means that the
// listener's counts, and so do all fields of the listener that a Host hasn't.
//
// A request by HTTP whose Host belongs to another Host than the connection's
// server name is answered 421, and so is one whose Host belongs to none where
// the listener itself asks for other client certificates or obeys other
// revocation lists.
type Host struct {
	Names []string // as ParseHostName takes them, each once at a listener

	Backend    string     // may be of another kind than the listener's: HTTP or bytes
	BackendTLS BackendTLS // the listener's counts only where Backend is empty too

	Alias      string
	ClientAuth ClientAuth
	ClientCA   TrustStore
	ClientCRL  string
}

// CRLExpired says what a revocation list counts for after its nextUpdate.
type CRLExpired string

// Values of CRLExpired. The empty value is CRLExpiredRefuse.
const (
	CRLExpiredRefuse CRLExpired = "refuse" // clients of its issuer are refused
	CRLExpiredWarn   CRLExpired = "warn"   // it counts as before, with a warning
)

// BackendTLS is how an https or tls backend is reached.
type BackendTLS struct {
	CA                TrustStore // Path empty: the system's
	Name              string     // verified and sent as SNI; empty: the URL's host
	ClientCertificate bool       // present a certificate chosen by the key manager
}

// ClientHeaders names the headers that tell an HTTP backend of the client's
// certificate. Empty names are not sent.
type ClientHeaders struct {
	Cert    string // default Client-Cert
	Chain   string // default Client-Cert-Chain
	Subject string // default X-Client-Subject
	Format  string // of Cert: rfc9440 (default), der-b64, pem-urlencoded, pem-spaces
}
