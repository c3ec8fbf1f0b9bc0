// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"cmp"
	"context"
	"time"

	"github.com/tlsd/tlsd/internal/filewatch"
)

const (
	defaultPoll = 10 * time.Second
	// patience is how long content that can't be used lies there before it is
	// complained about: half-written files, and pairs of which one is still to
	// come, mend themselves.
	patience = time.Second

	causeFiles = "files changed"
)

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
	w := filewatch.New(v.env.Logger())
	defer w.Close()
	defer v.sight.end()
	for again := true; again; {
		w.Follow(paths) // before the look: what changes after it is told of
		seen := v.sight.begin(paths)
		due := v.look(ctx)
		close(seen.done)
		again = w.Wait(ctx, due, v.hurry)
	}
}

// look takes in what has changed since the last one, and returns after how long
// it wants to be called again, if nothing happens before.
func (v *Views[T]) look(ctx context.Context) (due time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.read(ctx, causeFiles, false) // which logs it
	due = cmp.Or(max(v.env.Options.Poll, 0), defaultPoll)
	for _, p := range v.places {
		if p.refused != nil && !p.refused.told {
			due = min(due, patience)
		}
	}
	return due
}
