// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
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
	// Strict refuses a keystore with an entry that should work and does not.
	// Without, the entry is skipped.
	Strict bool
}

// Views keeps the current view of the keystores of a tier, and with it what the
// tier derives from it, a T. Its methods are safe for concurrent use; Current
// and View cost one atomic load.
//
// A tier embeds it and so has all of a key manager that is about keystores:
// keymanager.Lister, Reloader and Numbered.
type Views[T any] struct {
	env    keymanager.Env
	opt    ViewOptions
	derive func(*View) (T, error)

	// View and T are published as one value, so that nobody sees a chooser
	// with the entries of another generation. Whoever has loaded an old one may
	// go on with it: nothing in it changes or is closed.
	current atomic.Pointer[published[T]]

	mu     sync.Mutex // one reload at a time; guards stores
	stores []*Store   // the reading in use, by builder
}

type published[T any] struct {
	view     *View
	value    T
	replaced chan struct{} // closed when the next one is published
}

// OpenViews opens and proves the keystores of env and derives the first T. It
// fails where a keystore does not open or has no usable key, where Options name
// an alias that is not there, or where derive fails.
func OpenViews[T any](ctx context.Context, env keymanager.Env, opt ViewOptions, derive func(*View) (T, error)) (*Views[T], error) {
	if len(env.Builders) == 0 {
		return nil, errors.New("no keystore is configured: name one with --keystore (keystores)")
	}
	v := &Views[T]{env: env, opt: opt, derive: derive}
	for _, src := range env.Builders {
		s, err := openProven(ctx, src, env.Options, opt)
		if err != nil {
			return nil, err
		}
		v.stores = append(v.stores, s)
	}
	if err := checkAliases(v.stores, env.Options); err != nil {
		return nil, err
	}
	generation := max(env.FirstGeneration, 1)
	if err := v.publish(&View{Generation: generation, Cause: "start", Entries: entriesOf(v.stores, opt.KeepKeys)}); err != nil {
		return nil, err
	}
	for i, s := range v.stores {
		logStore(env.Logger(), i, generation, s)
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

// Changed returns the current view and a channel that is closed when it is
// replaced. A watcher loops over it and misses nothing but intermediate views.
func (v *Views[T]) Changed() (*View, <-chan struct{}) {
	p := v.current.Load()
	return p.view, p.replaced
}

// Reload reads the keystores anew and publishes a new view if anything is
// different. Each keystore is judged alone: a new reading that does not open,
// has no usable key, holds an entry broken that is good in the reading in use,
// or lacks a demanded alias that it had, is refused as a whole, and the reading
// in use stays. The error tells of those; the others are taken all the same. If
// nothing is different, or T cannot be derived, the view stays as it is.
func (v *Views[T]) Reload(ctx context.Context) error { return v.reload(ctx, "reload") }

func (v *Views[T]) reload(ctx context.Context, cause string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	next := make([]*Store, len(v.stores))
	changed := false
	for i, old := range v.stores {
		s, err := v.reread(ctx, old)
		if err != nil {
			v.logRefused(i, old, err)
			errs = append(errs, err)
			s = old
		}
		next[i] = s
		changed = changed || s != old
	}
	if changed {
		if err := v.swap(next, cause); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// reread returns the new reading of a keystore, or old if it is the same.
func (v *Views[T]) reread(ctx context.Context, old *Store) (*Store, error) {
	same, err := old.unchanged()
	if err != nil || same {
		return old, err
	}
	s, err := openProven(ctx, old.src, v.env.Options, v.opt)
	if err != nil {
		return nil, err
	}
	if err := compare(old, s, v.env.Options.Aliases); err != nil {
		return nil, fmt.Errorf("keystore %q: %w", old.src.Name(), err)
	}
	if s.sameVerdicts(old) {
		return old, nil
	}
	return s, nil
}

// swap publishes the view of next. The caller holds mu.
func (v *Views[T]) swap(next []*Store, cause string) error {
	generation := v.View().Generation + 1
	err := v.publish(&View{Generation: generation, Cause: cause, Entries: entriesOf(next, v.opt.KeepKeys)})
	if err != nil {
		for i, s := range next {
			if s != v.stores[i] {
				v.logRefused(i, s, err)
			}
		}
		return err
	}
	log := v.env.Logger()
	for i, s := range next {
		if s != v.stores[i] {
			logging.LogKey(log, zap.InfoLevel, logging.MsgChanged, logging.KeyEvent{Builder: i, Generation: generation},
				zap.String(logging.FieldKeystore, s.src.Name()))
			logStore(log, i, generation, s)
		}
	}
	v.stores = next
	return nil
}

func (v *Views[T]) publish(view *View) error {
	value, err := v.derive(view)
	if err != nil {
		return err
	}
	old := v.current.Swap(&published[T]{view: view, value: value, replaced: make(chan struct{})})
	if old != nil {
		close(old.replaced)
	}
	return nil
}

func (v *Views[T]) logRefused(builder int, s *Store, err error) {
	logging.LogKey(v.env.Logger(), zap.ErrorLevel, logging.MsgReloadFailed,
		logging.KeyEvent{Builder: builder, Generation: v.View().Generation, Reason: "the reading in use stays", Err: err},
		zap.String(logging.FieldKeystore, s.src.Name()))
}
