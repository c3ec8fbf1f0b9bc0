// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package keymanager is the contract between a TLS front and the thing that
// owns private keys.
//
// A key manager answers one question, [KeyManager.Select]: which credential
// (certificate chain and key) for this hello. The credential's [Key] signs.
// Everything else is optional and found by type assertion: [Lister],
// [Watcher], [Reloader], [Numbered], [Explainer].
//
// Whether a key manager runs in this process, in a child process or behind a
// socket is none of this package's business: the host in framework/plugin
// implements the same interfaces over gRPC. The package knows no transport, no
// keystore format and no policy; framework/keystore and framework/choose have
// those, and a tier is thin over them.
package keymanager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"
)

// ErrNoCredential is returned by Select when no credential fits the hello. It
// is the one error that is an answer: the peer gets alert 40
// (handshake_failure). Any other error is a failure and ends the handshake with
// alert 80 (internal_error).
var ErrNoCredential = errors.New("no credential fits the hello")

// ErrUnknownKey is returned by Sign over a transport when the key process does
// not hold the key id that it was asked for.
var ErrUnknownKey = errors.New("key id unknown to the key process")

// KeyManager chooses credentials. It is safe for concurrent use.
type KeyManager interface {
	// Select returns the credential for h, or ErrNoCredential. Any other
	// error ends the handshake. The result is the caller's to keep and never
	// changes, whatever happens to the keystore afterwards. h is not kept.
	Select(ctx context.Context, h *Hello) (*Credential, error)
}

// Credential is one entry of one view, always handed out whole: chain and key
// belong together.
type Credential struct {
	Builder    int    // index of the keystore builder, from 0
	Alias      string // entry name as stored
	Generation uint64 // number of the view it was chosen from
	Chain      [][]byte
	Leaf       *x509.Certificate
	Key        Key
	Schemes    []tls.SignatureScheme // nil: all that the key type allows
	OCSPStaple []byte
	Reuse      Reuse // zero: the answer is for this handshake only
}

// Reuse says for which other hellos, and how long, an answer holds: it depends
// only on the fields in Vary and is the same while From <= now < Until on the
// wall clock.
type Reuse struct {
	Vary        Fields
	From, Until time.Time
}

// Lister is implemented by key managers that can say what they hold. An Entry
// that is usable has a Key, so that a check can make a trial signature.
type Lister interface {
	List(ctx context.Context) ([]Entry, error)
}

// Watcher is implemented by key managers whose view changes by itself. Watch
// calls changed for each new generation, one call at a time, until ctx ends,
// and then returns nil. It may begin with the present one, and tell of one again
// when more is known of it.
type Watcher interface {
	Watch(ctx context.Context, changed func(Change)) error
}

// Reloader is implemented by key managers that can read their keystores anew.
// On error the old state stays in use. A Reload that finds nothing changed
// keeps the generation.
type Reloader interface {
	Reload(ctx context.Context) error
}

// Numbered is implemented by key managers that number their views themselves,
// from Env.FirstGeneration on: Generation is the number of the view in use.
// Where a key manager is neither this nor a Watcher, each successful Reload is a
// new generation, and Credential.Generation is filled in for it.
type Numbered interface {
	Generation() uint64
}

// Tier is a key manager implementation with a name: a value, never a
// registration. Open reads the keystores and returns a key manager that is
// ready; ctx bounds the opening only.
type Tier struct {
	Name string
	Open func(ctx context.Context, env Env) (KeyManager, error)

	// FilesOnly says that neither Open nor what it returns needs more of the
	// machine than to read the files that Env.Builders names: no other file, no
	// network, no program. A key process of its own then gives up the rest, as
	// far as its system lets it (Landlock).
	FilesOnly bool

	// KeepsNoKeys says that a decrypted key lives for one signature. What it leaves
	// in memory, such as copies made by Go's crypto packages, is garbage that is
	// collected as early as Go does by itself; key processes of other tiers are
	// collected less often, which spares CPU.
	KeepsNoKeys bool
}

// Env is all that a tier is given.
type Env struct {
	Builders        []Source
	Settings        json.RawMessage // plugins[].settings of the configuration, keys in their own case
	Options         Options
	FirstGeneration uint64           // number of the first view
	Log             *zap.Logger      // named "keymanager"; nil: none
	Now             func() time.Time // nil: time.Now
}

// Options are the settings that every tier gets and obeys as far as they
// concern it.
type Options struct {
	Constraints   Constraints
	DefaultAlias  string        // serves a hello without SNI or with an unknown name, if the peer can use it
	Aliases       []string      // demanded by listeners and hosts: start and reload fail where one is missing
	JDKCompat     bool          // choose exactly as the JDK's PKIX key manager does
	ExpiryWarning time.Duration // warn about entries that expire within; 0: the default, 21 days
	Poll          time.Duration // how often stores are compared by content beside file events; 0: the default, 10 s
	Iterations    int           // cap on key derivation iterations of one item; 0: the default, 5,000,000
}

// Constraints are algorithm constraints in java.security syntax. Nil means the
// defaults of JDK 25, an empty string no constraint.
type Constraints struct {
	CertPath *string // jdk.certpath.disabledAlgorithms
	TLS      *string // jdk.tls.disabledAlgorithms
}

// Entry is one entry of a keystore as a key manager sees it, and what
// framework/choose chooses from.
type Entry struct {
	Builder int
	Alias   string
	Kind    string // KindKey, KindTrusted or KindSecret
	Chain   [][]byte
	Schemes []tls.SignatureScheme // nil: all that the key type allows
	Key     Key                   // set where Usable
	Usable  bool
	Reason  string // why not, where not Usable
}

// Kinds of entries.
const (
	KindKey     = "key"
	KindTrusted = "trusted"
	KindSecret  = "secret"
)

// Change tells of a new generation, or of one whose Failed has changed.
//
// Names and WildcardParents are what the usable entries carry, in the spelling
// that framework/choose's Forms returns. Where NamesKnown, an answer to a hello
// with a server name that is neither depends on nothing of the name but that
// there is one.
type Change struct {
	Generation      uint64
	Cause           string   // for the log: "reload", "file changed", …
	Names           []string // server names that some entry carries: lower case, A-labels, no trailing dot; addresses too
	WildcardParents []string // "example.com" for "*.example.com"
	NamesKnown      bool     // false: the names are not known, and answers that vary by server name are not kept
	Failed          string   // why what lies in some keystore now is not in use; empty: it is
}

// Time returns the time by env.Now, or the real one.
func (e Env) Time() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// Logger returns env.Log, or a logger that drops everything.
func (e Env) Logger() *zap.Logger {
	if e.Log == nil {
		return zap.NewNop()
	}
	return e.Log
}
