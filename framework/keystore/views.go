// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// View is one consistent reading of all keystores of a tier: of each the last
// good one. It never changes.
type View struct {
	Generation uint64
	Cause      string             // "start", "reload", …, for logs and watchers
	Entries    []keymanager.Entry // builder order, then store order; Key is set where Usable
}

// ViewOptions are what the tiers differ in.
type ViewOptions struct {
	// KeepKeys keeps the decrypted keys with the view. Without, each signature
	// decrypts its key anew and wipes it.
	KeepKeys bool
	// Load makes the keys that KeepKeys keeps; nil: Go's crypto packages do.
	Load LoadFunc
	// Strict refuses a keystore with an entry that should work and does not.
	// Without, the entry is skipped.
	Strict bool
	// Follow has Watch take in what becomes of the files. Without, only Reload
	// looks at them again.
	Follow bool
}

// Views keeps the current view of the keystores of a tier, and with it what the
// tier derives from it, a T. Its methods are safe for concurrent use; Current
// and View cost one atomic load.
//
// A tier embeds it and so has all of a key manager that is about keystores:
// keymanager.Lister, Reloader, Numbered and Watcher. It needs no closing: what
// it does by itself, it does while a Watch runs.
type Views[T any] struct {
	env    keymanager.Env
	opt    ViewOptions
	derive func(*View) (T, error)

	// View and T are published as one value, so that nobody sees a chooser
	// with the entries of another generation. Whoever has loaded an old one may
	// go on with it: nothing in it changes or is closed.
	current atomic.Pointer[published[T]]

	mu     sync.Mutex // one reading at a time; guards places
	places []*place   // by builder

	sight   sight
	hurry   chan struct{} // asks the follower to look now
	follows chan struct{} // full: there is a follower
}

type published[T any] struct {
	view     *View
	value    T
	cause    string        // why it was published
	failed   string        // keymanager.Change.Failed
	replaced chan struct{} // closed when the next one is published
}

// OpenViews opens and proves the keystores of env and derives the first T. It
// fails where a keystore does not open or has no usable key, where Options name
// an alias that is not there, or where derive fails.
func OpenViews[T any](ctx context.Context, env keymanager.Env, opt ViewOptions, derive func(*View) (T, error)) (*Views[T], error) {
	if len(env.Builders) == 0 {
		return nil, errors.New("no keystore is configured: name one with --keystore (keystores)")
	}
	v := &Views[T]{env: env, opt: opt, derive: derive, hurry: make(chan struct{}, 1), follows: make(chan struct{}, 1)}
	for i, src := range env.Builders {
		p, err := openPlace(ctx, i, src, env.Options, opt)
		if err != nil {
			return nil, err
		}
		v.places = append(v.places, p)
	}
	if err := checkAliases(storesOf(v.places), env.Options); err != nil {
		return nil, err
	}
	const cause = "start"
	view := &View{Generation: max(env.FirstGeneration, 1), Cause: cause, Entries: entriesOf(storesOf(v.places), opt.KeepKeys)}
	value, err := derive(view)
	if err != nil {
		return nil, err
	}
	v.publish(published[T]{view: view, value: value, cause: cause})
	for _, p := range v.places {
		logStore(env.Logger(), p.builder, view.Generation, p.store)
	}
	return v, nil
}

// Current returns what was derived from the current view.
func (v *Views[T]) Current() T { return v.current.Load().value }

// View returns the current view. It may be newer than what Current returned.
func (v *Views[T]) View() *View { return v.current.Load().view }

// List returns the entries of the current view, as keymanager.Lister has it.
func (v *Views[T]) List(context.Context) ([]keymanager.Entry, error) {
	return slices.Clone(v.View().Entries), nil
}

// Generation returns the number of the current view, as keymanager.Numbered has
// it.
func (v *Views[T]) Generation() uint64 { return v.View().Generation }

func (v *Views[T]) publish(p published[T]) {
	p.replaced = make(chan struct{})
	if old := v.current.Swap(&p); old != nil {
		close(old.replaced)
	}
}
