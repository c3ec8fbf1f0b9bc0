// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"sync"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Named is implemented by a T that knows the server names of its view, for
// keymanager.Change.
type Named interface {
	Names() (exact, parents []string, known bool)
}

// Watch calls changed with the current view and with each that takes its place,
// one call at a time, until ctx ends, as keymanager.Watcher has it. Who is slow
// is told of the newest only. It tells too when Change.Failed has changed.
//
// With ViewOptions.Follow, files are followed while a Watch runs, and only then:
// by events and, every Options.Poll, by content. Content that can't be used is
// looked at again whenever it changes, and complained about once, when it has
// lain there for a second. Nothing of it is left when Watch has returned.
func (v *Views[T]) Watch(ctx context.Context, changed func(keymanager.Change)) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	if v.opt.Follow {
		following.Go(func() { v.follow(ctx) })
	}
	for {
		p := v.current.Load()
		changed(p.change())
		select {
		case <-p.replaced:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *published[T]) change() keymanager.Change {
	c := keymanager.Change{Generation: p.view.Generation, Cause: p.cause, Failed: p.failed}
	if n, ok := any(p.value).(Named); ok {
		c.Names, c.WildcardParents, c.NamesKnown = n.Names()
	}
	return c
}
