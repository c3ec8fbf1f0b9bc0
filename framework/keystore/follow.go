// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"time"
)

const (
	defaultPoll = 10 * time.Second
	// settle is how long events are left to come in before a look, so that one
	// update is looked at once.
	settle = 50 * time.Millisecond
	// patience is how long content that can't be used lies there before it is
	// complained about: half-written files, and pairs of which one is still to
	// come, mend themselves.
	patience = time.Second

	causeFiles = "files changed"
)

// follower looks at keystores when files change, and from time to time.
type follower struct {
	eyes  *eyes
	poll  *time.Ticker
	hurry <-chan struct{}
	took  time.Duration // of the last look
}

// follow takes in what becomes of the files until ctx ends.
func (v *Views[T]) follow(ctx context.Context) {
	select { // one at a time: another would only do the same work again
	case v.follows <- struct{}{}:
		defer func() { <-v.follows }()
	case <-ctx.Done():
		return
	}
	paths := followed(v.env.Builders)
	if len(paths) == 0 {
		return
	}
	poll := v.env.Options.Poll
	if poll <= 0 {
		poll = defaultPoll
	}
	f := &follower{eyes: newEyes(paths, v.env.Logger()), poll: time.NewTicker(poll), hurry: v.hurry}
	defer f.eyes.close()
	defer f.poll.Stop()
	defer v.sight.end()
	for {
		f.eyes.open()
		seen := v.sight.begin(paths)
		again := v.look(ctx)
		f.took = time.Since(seen.began)
		close(seen.done)
		if !f.wait(ctx, again) {
			return
		}
	}
}

// wait returns when it is time for another look, after again at the latest if
// that is not zero; false: ctx has ended.
func (f *follower) wait(ctx context.Context, again time.Duration) bool {
	var retry <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		retry = timer.C
	}
	events, errors := f.eyes.events()
	var quiet <-chan time.Time // set by the first event; others then add nothing
	for {
		select {
		case ev := <-events:
			if quiet == nil && f.eyes.matters(ev) {
				// Files that change all the time get half of the time there is.
				timer := time.NewTimer(max(settle, f.took))
				defer timer.Stop()
				quiet = timer.C
			}
		case <-errors: // events were lost
			return true
		case <-quiet:
			return true
		case <-f.hurry:
			return true
		case <-f.poll.C:
			return true
		case <-retry:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// look takes in what has changed since the last one. It returns after how long
// it wants to be called again; 0: when something happens.
func (v *Views[T]) look(ctx context.Context) (again time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.read(ctx, causeFiles, false) // which logs it
	for _, p := range v.places {
		if p.refused != nil && !p.refused.told {
			return patience
		}
	}
	return 0
}
