// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// toggle sets levels of the log, some of them for a time. Of a logger it knows
// one level to go back to: setting it again, for a time or for good, ends what was
// set for a time before.
type toggle struct {
	set func(context.Context, map[string]string) error
	now func() map[string]string
	log *zap.Logger

	mu      sync.Mutex // guards what follows, and is held while levels are set
	pending map[string]*borrowed
	closed  bool
}

// borrowed is a level that goes back.
type borrowed struct {
	level string // to go back to; empty: none of its own
	timer *time.Timer
}

// put sets levels, for good where last is 0.
func (t *toggle) put(ctx context.Context, levels map[string]string, last time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.now()
	if err := t.set(ctx, levels); err != nil {
		return err
	}
	t.log.Info("log levels changed", append(logged(levels), zap.Duration("for", last))...)
	for name := range levels {
		back := before[name]
		if b := t.pending[name]; b != nil {
			b.timer.Stop()
			back = b.level
			delete(t.pending, name)
		}
		if last > 0 && !t.closed {
			t.borrow(name, back, last)
		}
	}
	return nil
}

// borrow has the level of a logger go back after last.
func (t *toggle) borrow(name, back string, last time.Duration) {
	if t.pending == nil {
		t.pending = map[string]*borrowed{}
	}
	b := &borrowed{level: back}
	b.timer = time.AfterFunc(last, func() { t.giveBack(name, b) })
	t.pending[name] = b
}

func (t *toggle) giveBack(name string, b *borrowed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.pending[name] != b {
		return // set again meanwhile
	}
	delete(t.pending, name)
	back := map[string]string{name: b.level}
	if err := t.set(context.Background(), back); err != nil {
		t.log.Warn("log levels not set back", append(logged(back), zap.Error(err))...)
		t.borrow(name, b.level, time.Minute)
		return
	}
	t.log.Info("log levels changed back", logged(back)...)
}

// forget has the levels of loggers that were set by other means stay as they are.
func (t *toggle) forget(levels map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range levels {
		if b := t.pending[name]; b != nil {
			b.timer.Stop()
			delete(t.pending, name)
		}
	}
}

// close forgets what goes back.
func (t *toggle) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, b := range t.pending {
		b.timer.Stop()
	}
}
