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
	firstGap         = 100 * time.Millisecond  // between one start and the next
	longGap          = 1500 * time.Millisecond // where the one before got ready
	failedGap        = 10 * time.Second        // where it didn't
	slowAfter        = 3                       // starts, after which there is at most one a second
	stableFor        = time.Minute             // after which a process counts as well started
	configureTimeout = 2 * time.Minute         // that a process has to open its keystores, at its start and later
)

// supervise replaces the process whenever it ends, until Close.
func (h *Host) supervise(p *process) {
	pace := backoff{last: p.since}
	for p != nil {
		select {
		case <-h.ctx.Done():
			h.lost(ErrClosed)
			p.stop()
			return
		case <-p.ctx.Done():
		}
		why := context.Cause(p.ctx)
		h.lost(why)
		lived := time.Since(p.since)
		h.log.Warn("key process ended", zap.String(logging.FieldTier, h.tier), zap.Int("pid", p.pid),
			zap.String("status", p.status(why)), zap.Duration("after", lived))
		h.stopping.Go(p.stop)
		pace.ended(lived)
		p = h.replace(&pace, why)
	}
}

// replace starts processes until one is ready, which it makes the one that
// answers. It returns nil after Close.
func (h *Host) replace(pace *backoff, why error) *process {
	for failed := false; ; failed = true {
		pause := pace.next(time.Now(), !failed)
		if failed || pause > h.wait {
			h.backOff(why)
		}
		select {
		case <-h.ctx.Done():
			return nil
		case <-time.After(pause):
		}
		h.lost(why)
		p, err := h.open(h.ctx)
		if err == nil {
			h.put(p.link)
			return p
		}
		if h.ctx.Err() != nil {
			return nil
		}
		why = err
		h.log.Error("key process not started", zap.String(logging.FieldTier, h.tier), zap.NamedError(logging.FieldError, err))
	}
}

// backoff paces starts. What counts is how far apart they are: a process that
// has done its work for a while is replaced at once.
type backoff struct {
	starts int
	last   time.Time // start
}

// ended forgets the starts before a process that has lived long enough.
func (b *backoff) ended(lived time.Duration) {
	if lived >= stableFor {
		b.starts = 0
	}
}

// next returns how long to wait, from now, before the next start, and takes it
// for granted. Starts get further apart by the factor two each time, and up to a
// quarter more, so that several hosts don't go in step: until a call that waits
// just about outlasts the gap, if the process before got ready, and else further.
func (b *backoff) next(now time.Time, ready bool) time.Duration {
	gap := firstGap << min(b.starts, 7)
	if b.starts >= slowAfter {
		gap = max(gap, time.Second)
	}
	if ready {
		gap = min(gap, longGap)
	}
	gap = min(gap, failedGap)
	b.starts++
	pause := max(0, gap+rand.N(gap/4)-now.Sub(b.last))
	b.last = now.Add(pause)
	return pause
}
