// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Spec is what a key manager is opened with. It is read once and not kept by
// reference, except that passwords given by value are kept for restarts.
type Spec struct {
	Sources   []keymanager.Source
	Settings  json.RawMessage
	Options   keymanager.Options
	LogLevels map[string]string // by logger name, "" is the root

	// After is a generation that all those of the key manager are to be newer
	// than: one that it takes the place of.
	After uint64

	// Files names what Trust will be asked for later: trust stores and their
	// password files. It matters only for descriptors such as /dev/stdin,
	// which have to be passed on when the key process starts.
	Files []string

	Log *zap.Logger      // InProcess only: where the tier logs; nil: nowhere
	Now func() time.Time // InProcess only: the tier's clock; nil: time.Now
}

// Manager is a running key manager, wherever it runs: [Host] runs it in a child
// process, [Local] in this one. It is safe for concurrent use.
type Manager interface {
	keymanager.KeyManager
	keymanager.Lister
	keymanager.Explainer
	keymanager.Reloader
	keymanager.Watcher

	// Describe says what is running. It answers from memory.
	Describe() Description
	// Status says how the key process is doing. It answers from memory, and is
	// cheap enough to ask for each handshake.
	Status() Status
	// Isolation says what keeps the key process apart from this one, as it and
	// this process find it now. To that end it tries to open the keystores, and
	// reads nothing of them.
	Isolation(ctx context.Context) ([]Finding, error)
	// Trust reads the trust store at path and returns its certificates as DER,
	// at least one, and warnings worth logging.
	Trust(ctx context.Context, path, typ string, pw keymanager.PasswordRef) (ders [][]byte, warnings []string, err error)
	// SetLogLevels sets the levels of the key manager's loggers by name, ""
	// being the root. They outlive a restart of the key process.
	SetLogLevels(ctx context.Context, levels map[string]string) error

	// Done is closed when the key manager is lost for good or closed.
	Done() <-chan struct{}
	// Err says why Done is closed: nil before that and after Close.
	Err() error
	// Close ends the key manager and frees all that it holds. Calls under way
	// fail. It is idempotent.
	Close() error
}

// Description says what is running.
type Description struct {
	Name     string // of the tier, as the key process calls it
	Version  string // of its executable
	Contract int    // version of the contract that is spoken
	Isolated bool   // whether keys live in another process
	PID      int    // of the key process at the moment; 0: none
}

// Status says how a key process is doing.
type Status struct {
	Up       bool      // whether it answers at the moment
	Since    time.Time // that it is as Up says
	PID      int       // 0: none, or not known
	Restarts uint64    // processes after the first, or connections to an endpoint
	Watched  bool      // whether a Watch hears of its changes at once; while not, what was kept may be out of date
	Err      error     // why it is not up; nil where it is
}
