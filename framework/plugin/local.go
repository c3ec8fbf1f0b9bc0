// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Local is a key manager in this process. Keys and passwords are in this
// process's memory: it isolates nothing and is meant for tests. It does all that
// a key process does, short of gRPC.
type Local struct {
	tier    string
	service *service
	pid     int // this process, which os.Getpid asks the kernel for each time
	since   time.Time
	done    chan struct{}
	once    sync.Once // guards the closing of done
}

var _ Manager = (*Local)(nil)

// InProcess opens the tier in this process. ctx bounds the opening only. The
// tier logs to spec.Log, whose levels are the caller's: LogLevels and
// SetLogLevels do nothing.
func InProcess(ctx context.Context, tier keymanager.Tier, spec Spec) (*Local, error) {
	log := spec.Log
	if log == nil {
		log = zap.NewNop()
	}
	s, err := openService(ctx, tier, withLog(keymanager.Env{
		Builders:        spec.Sources,
		Settings:        spec.Settings,
		Options:         spec.Options,
		FirstGeneration: spec.After + 1,
		Now:             spec.Now,
	}, tier.Name, log))
	if err != nil {
		return nil, err
	}
	return &Local{tier: tier.Name, service: s, pid: os.Getpid(), since: time.Now(), done: make(chan struct{})}, nil
}

// Describe says that nothing is isolated.
func (l *Local) Describe() Description {
	return Description{Name: l.tier, Version: version(), Contract: ContractVersion, PID: l.pid}
}

// Status says that all is well until Close.
func (l *Local) Status() Status {
	if err := l.live(); err != nil {
		return Status{Since: l.since, Err: err}
	}
	return Status{Up: true, Since: l.since, PID: l.pid, Watched: l.service.feed.intact()}
}

// Isolation says that there is none.
func (l *Local) Isolation(context.Context) ([]Finding, error) { return notIsolated(), l.live() }

// Select returns the tier's answer. Its key refuses what is no handshake and
// logs, as that of a Host does.
func (l *Local) Select(ctx context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	if err := l.live(); err != nil {
		return nil, err
	}
	c, err := l.service.Select(ctx, h)
	if err != nil {
		return nil, err
	}
	c.Key = &localKey{l, keyRef{keymanager.KeyIDOf(c.Leaf), c.Key, c.Builder, c.Alias, c.Generation}}
	return c, nil
}

// List returns what the tier holds.
func (l *Local) List(ctx context.Context) ([]keymanager.Entry, error) {
	if err := l.live(); err != nil {
		return nil, err
	}
	entries, generation, err := l.service.list(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]keymanager.Entry, len(entries)) // the tier's own stays as it is
	for i, e := range entries {
		if id, ok := entryKeyID(e); ok {
			e.Key = &localKey{l, keyRef{id, e.Key, e.Builder, e.Alias, generation}}
		}
		out[i] = e
	}
	return out, nil
}

// Reload has the tier read its keystores anew. On error the old state stays.
func (l *Local) Reload(ctx context.Context) error {
	if err := l.live(); err != nil {
		return err
	}
	_, _, err := l.service.reload(ctx)
	return err
}

// Generation returns the number of the newest view.
func (l *Local) Generation() uint64 { return l.service.feed.newest() }

// Watch calls changed for the newest generation and for each newer one, until ctx
// ends. It returns ErrClosed if the key manager is closed first. While the tier
// doesn't tell of changes, which Watched says, it waits.
func (l *Local) Watch(ctx context.Context, changed func(keymanager.Change)) error {
	for {
		_ = l.service.feed.follow(ctx, func(c keymanager.Change) error { // the service has logged why it ends
			changed(c)
			return nil
		})
		select {
		case <-ctx.Done():
			return nil
		case <-l.done:
			return ErrClosed
		case <-time.After(rewatchPause):
		}
	}
}

// Trust reads the trust store at path.
func (l *Local) Trust(ctx context.Context, path, typ string, pw keymanager.PasswordRef) (ders [][]byte, warnings []string, err error) {
	if err := l.live(); err != nil {
		return nil, nil, err
	}
	return l.service.trust(ctx, path, typ, pw)
}

// SetLogLevels does nothing: the caller's logger has the caller's levels.
func (l *Local) SetLogLevels(context.Context, map[string]string) error { return l.live() }

// Done is closed by Close; nothing else ends a key manager in this process.
func (l *Local) Done() <-chan struct{} { return l.done }

// Err returns nil.
func (l *Local) Err() error { return nil }

// Close ends what the tier does in the background and waits for it.
func (l *Local) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.service.close()
	})
	return nil
}

func (l *Local) live() error {
	select {
	case <-l.done:
		return ErrClosed
	default:
		return nil
	}
}

// localKey signs as a key process does.
type localKey struct {
	local *Local
	ref   keyRef
}

func (k *localKey) Public() crypto.PublicKey { return k.ref.key.Public() }

func (k *localKey) Sign(ctx context.Context, req *keymanager.SignRequest) ([]byte, error) {
	if err := k.local.live(); err != nil {
		return nil, err
	}
	return k.local.service.sign(ctx, k.ref, req)
}
