// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// feed holds the newest generation and tells followers of each newer one.
type feed struct {
	now atomic.Pointer[feedState]
	mu  sync.Mutex // held while the next state is made from the one in now
}

// feedState is immutable but for next, which is closed when another state has
// taken its place.
type feedState struct {
	change keymanager.Change
	broken error // not nil: newer generations may go unnoticed
	next   chan struct{}
}

func newFeed(first keymanager.Change) *feed {
	f := &feed{}
	f.now.Store(&feedState{change: first, next: make(chan struct{})})
	return f
}

// newest returns the number of the newest generation known.
func (f *feed) newest() uint64 { return f.now.Load().change.Generation }

// intact reports whether newer generations are told of.
func (f *feed) intact() bool { return f.now.Load().broken == nil }

// publish takes c in if it is news.
func (f *feed) publish(c keymanager.Change) {
	f.update(func(s *feedState) bool {
		news := isNews(c, s.change)
		if news {
			s.change = c
		}
		return news
	})
}

// raise takes in a generation of which nothing else is known yet.
func (f *feed) raise(generation uint64, cause string) {
	f.update(func(s *feedState) bool {
		news := generation > s.change.Generation
		if news {
			s.change = keymanager.Change{Generation: generation, Cause: cause, Failed: s.change.Failed}
		}
		return news
	})
}

// isNews says whether c is a newer generation than known, or says more of the
// same: names that are known at last, or another failure.
func isNews(c, known keymanager.Change) bool {
	switch {
	case c.Generation != known.Generation:
		return c.Generation > known.Generation
	case c.NamesKnown != known.NamesKnown:
		return c.NamesKnown
	}
	return c.Failed != known.Failed
}

// setBroken ends all following with err until it is called with nil.
func (f *feed) setBroken(err error) {
	f.update(func(s *feedState) bool { s.broken = err; return true })
}

func (f *feed) update(change func(*feedState) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.now.Load()
	s := &feedState{change: old.change, broken: old.broken, next: make(chan struct{})}
	if change(s) {
		f.now.Store(s)
		close(old.next)
	}
}

// follow calls told with the newest generation at once and with each newer one,
// until ctx ends, told fails or newer ones may go unnoticed. A slow follower is
// told of the newest only.
func (f *feed) follow(ctx context.Context, told func(keymanager.Change) error) error {
	var last *keymanager.Change
	for {
		s := f.now.Load()
		if s.broken != nil {
			return s.broken
		}
		if last == nil || isNews(s.change, *last) {
			if err := told(s.change); err != nil {
				return err
			}
			last = &s.change
		}
		select {
		case <-s.next:
		case <-ctx.Done():
			return nil
		}
	}
}
