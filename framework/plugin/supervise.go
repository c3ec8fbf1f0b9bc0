// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

const (
	firstPause       = 100 * time.Millisecond
	longPause        = 30 * time.Second
	slowAfter        = 3               // starts, after which there is at most one a second
	stableFor        = time.Minute     // after which a process counts as well started
	configureTimeout = 2 * time.Minute // that a process has to open its keystores, at its start and later
)

// slot is what calls find: the process that answers, or nil in the gap between
// two. It is replaced as a whole, and changed is closed when that has happened.
type slot struct {
	process *process
	changed chan struct{}
}

func newSlot(p *process) *slot { return &slot{process: p, changed: make(chan struct{})} }

// put makes p the process that answers; nil: none is there.
func (h *Host) put(p *process) {
	close(h.slot.Swap(newSlot(p)).changed)
}

// ready returns the process that answers and waits for one until ctx ends.
func (h *Host) ready(ctx context.Context) (*process, error) {
	for {
		s := h.slot.Load()
		if s.process != nil && !s.process.gone() {
			return s.process, nil
		}
		select {
		case <-s.changed:
		case <-h.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ErrUnavailable
		}
	}
}

// supervise replaces the process whenever it ends, until Close.
func (h *Host) supervise(p *process) {
	var pace backoff
	for p != nil {
		select {
		case <-h.ctx.Done():
			h.put(nil)
			p.stop()
			return
		case <-p.child.exited:
		}
		h.put(nil)
		lived := time.Since(p.since)
		h.log.Warn("key process ended", zap.String(logging.FieldTier, h.launch.cmd.Tier), zap.Int("pid", p.child.number()),
			zap.String("status", p.child.status()), zap.Duration("after", lived))
		h.stopping.Go(p.stop)
		pace.ended(lived)
		p = h.replace(&pace)
	}
}

// replace starts processes until one is ready, which it makes the one that
// answers. It returns nil after Close.
func (h *Host) replace(pace *backoff) *process {
	for {
		pause := pace.next()
		select {
		case <-h.ctx.Done():
			return nil
		case <-time.After(pause):
		}
		p, err := h.open(h.ctx)
		if err == nil {
			h.put(p)
			h.catchUp(p)
			return p
		}
		if h.ctx.Err() != nil {
			return nil
		}
		h.log.Error("key process not started", zap.String(logging.FieldTier, h.launch.cmd.Tier), zap.NamedError(logging.FieldError, err))
	}
}

// backoff paces starts.
type backoff struct{ starts int }

// ended forgets the starts before a process that has lived long enough.
func (b *backoff) ended(lived time.Duration) {
	if lived >= stableFor {
		b.starts = 0
	}
}

// next returns how long to wait before the next start: twice as long each time,
// and up to a quarter more, so that several hosts don't go in step.
func (b *backoff) next() time.Duration {
	pause := longPause
	if b.starts < 9 { // 2^9 times the first pause is longer
		pause = firstPause << b.starts
	}
	if b.starts >= slowAfter {
		pause = max(pause, time.Second)
	}
	b.starts++
	return pause + rand.N(pause/4)
}
