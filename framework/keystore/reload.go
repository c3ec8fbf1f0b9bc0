// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// Reload reads the keystores anew and publishes a new view if anything is
// different. Each keystore is judged alone: a new reading that does not open,
// has no usable key, holds an entry broken that is good in the reading in use,
// or lacks a demanded alias that it had, is refused as a whole, and the reading
// in use stays. The error tells of those; the others are taken all the same. If
// nothing is different, or T cannot be derived, the view stays as it is.
func (v *Views[T]) Reload(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.read(ctx, "reload", true)
}

// read takes in what lies at the places, if it is another than last time or
// somebody has asked. It returns why some of it is refused. The caller holds mu.
func (v *Views[T]) read(ctx context.Context, cause string, asked bool) error {
	findings := make([]finding, len(v.places))
	moved := asked
	for i, p := range v.places {
		findings[i] = find(p.src)
		moved = moved || p.moved(findings[i])
	}
	now := v.current.Load()
	next := published[T]{view: now.view, value: now.value, cause: cause}
	var changed []*place
	if moved {
		stores, err := v.prove(ctx, findings)
		if err != nil {
			return err
		}
		changed = v.derived(&next, findings, stores)
	}
	for _, p := range v.places {
		p.complain(v.env.Logger(), next.view.Generation, asked)
	}
	if next.failed = v.failed(); next.view != now.view || next.failed != now.failed {
		v.publish(next)
	}
	for _, p := range changed {
		v.logChanged(p)
	}
	return errors.Join(v.reasons(func(p *place) error {
		if p.refused == nil {
			return nil
		}
		return p.refused.err
	})...)
}

// prove returns the new readings, by builder; nil where there is none. It fails
// only where ctx ends.
func (v *Views[T]) prove(ctx context.Context, findings []finding) ([]*Store, error) {
	stores := make([]*Store, len(findings))
	for i, p := range v.places {
		f := findings[i]
		if f.inputs == p.inputs {
			p.asBefore(v.env.Logger(), v.Generation())
			continue
		}
		s, err := p.prove(ctx, f, v.env.Options, v.opt)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			p.refuse(f, err)
		case s.sameVerdicts(p.store):
			p.use(f, p.store)
		default:
			stores[i] = s
		}
	}
	return stores, nil
}

// derived makes next the view with new readings in it, and these those in use,
// and returns their places. Where T can't be derived from all of them together,
// it takes those from which it can: a keystore that loses the default alias
// doesn't keep the others old. Where there are none, next stays.
func (v *Views[T]) derived(next *published[T], findings []finding, stores []*Store) (changed []*place) {
	var pending []*place
	for i, s := range stores {
		if s != nil {
			pending = append(pending, v.places[i])
		}
	}
	if len(pending) > 1 && v.take(next, findings, stores, pending...) == nil {
		return pending
	}
	for before := -1; before != len(pending); { // one may be of use with another only
		before = len(pending)
		pending = slices.DeleteFunc(pending, func(p *place) bool {
			if err := v.take(next, findings, stores, p); err != nil {
				p.refuse(findings[p.builder], err)
				return false
			}
			changed = append(changed, p)
			return true
		})
	}
	return changed
}

// take makes next the view with the new readings of some places in it, and these
// those in use. Where T can't be derived, next and the places stay.
func (v *Views[T]) take(next *published[T], findings []finding, stores []*Store, places ...*place) error {
	all := storesOf(v.places)
	for _, p := range places {
		all[p.builder] = stores[p.builder]
	}
	view := &View{Generation: v.Generation() + 1, Cause: next.cause, Entries: entriesOf(all, v.opt.KeepKeys)}
	value, err := v.derive(view)
	if err != nil {
		return err
	}
	next.view, next.value = view, value
	for _, p := range places {
		p.use(findings[p.builder], stores[p.builder])
	}
	return nil
}

func (v *Views[T]) logChanged(p *place) {
	log, generation := v.env.Logger(), v.Generation()
	logging.LogKey(log, zap.InfoLevel, logging.MsgChanged, logging.KeyEvent{Builder: p.builder, Generation: generation},
		zap.String(logging.FieldKeystore, p.src.Name()))
	logStore(log, p.builder, generation, p.store)
}

// failed is keymanager.Change.Failed: what the operator was told.
func (v *Views[T]) failed() string {
	var texts []string
	for _, err := range v.reasons(func(p *place) error { return p.wrong }) {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// reasons returns the errors of places, each once: several may have one in
// common.
func (v *Views[T]) reasons(of func(*place) error) []error {
	var errs []error
	seen := make(map[string]bool)
	for _, p := range v.places {
		if err := of(p); err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errs
}
