// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// msgAsBefore tells that a keystore which had been refused is what it was.
const msgAsBefore = "keystore is as in use again"

// place is a keystore builder and what is known of the keystore there.
type place struct {
	builder int
	src     keymanager.Source
	store   *Store   // the reading in use
	inputs  inputs   // that say what it says
	refused *refusal // of what lies there now; nil: that is in use
	wrong   error    // what the operator was told last; nil: all is well again
}

// refusal is why something is not in use. What it came of is not tried again
// until something changes.
type refusal struct {
	inputs inputs
	err    error
	since  time.Time
	told   bool // an operator knows
}

// finding is what lies at a place.
type finding struct {
	inputs inputs
	files  []file
	err    error
}

func find(src keymanager.Source) (f finding) {
	f.inputs, f.files, f.err = gather(src)
	return f
}

// openPlace opens and proves the keystore of a builder for the first time.
func openPlace(ctx context.Context, builder int, src keymanager.Source, o keymanager.Options, opt ViewOptions) (*place, error) {
	p := &place{builder: builder, src: src}
	f := find(src)
	s, err := p.prove(ctx, f, o, opt)
	if err != nil {
		return nil, err
	}
	p.use(f, s)
	return p, nil
}

// prove makes a reading of a finding, or says why it can't be used.
func (p *place) prove(ctx context.Context, f finding, o keymanager.Options, opt ViewOptions) (*Store, error) {
	if f.err != nil {
		return nil, f.err
	}
	var known *Store
	if f.inputs.secrets == p.inputs.secrets {
		known = p.store
	}
	s, err := openProven(ctx, p.src, f.files, known, o, opt)
	if err != nil || p.store == nil {
		return s, err
	}
	if err := compare(p.store, s, o.Aliases); err != nil {
		return nil, fmt.Errorf("keystore %q: %w", p.src.Name(), err)
	}
	return s, nil
}

// moved reports whether a finding is another than the last.
func (p *place) moved(f finding) bool {
	if p.refused != nil {
		return f.inputs != p.refused.inputs
	}
	return f.inputs != p.inputs
}

// use takes a reading of a finding into use.
func (p *place) use(f finding, s *Store) {
	p.store, p.inputs, p.refused, p.wrong = s, f.inputs, nil, nil
}

// refuse keeps a finding out of use.
func (p *place) refuse(f finding, err error) {
	if p.refused != nil && p.refused.inputs == f.inputs {
		p.refused.err = err
		return
	}
	p.refused = &refusal{inputs: f.inputs, err: err, since: time.Now()}
}

// asBefore takes note that what lies at p is what is in use.
func (p *place) asBefore(log *zap.Logger, generation uint64) {
	if p.wrong != nil {
		logging.LogKey(log, zap.InfoLevel, msgAsBefore, logging.KeyEvent{Builder: p.builder, Generation: generation},
			zap.String(logging.FieldKeystore, p.src.Name()))
	}
	p.refused, p.wrong = nil, nil
}

// complain tells the operator what is refused: what has been for a while, once;
// all of it where somebody has asked.
func (p *place) complain(log *zap.Logger, generation uint64, asked bool) {
	r := p.refused
	if r == nil || !asked && (r.told || time.Since(r.since) < patience) {
		return
	}
	r.told, p.wrong = true, r.err
	logging.LogKey(log, zap.ErrorLevel, logging.MsgReloadFailed,
		logging.KeyEvent{Builder: p.builder, Generation: generation, Reason: "the reading in use stays", Err: r.err},
		zap.String(logging.FieldKeystore, p.src.Name()))
}

func storesOf(places []*place) []*Store {
	stores := make([]*Store, len(places))
	for i, p := range places {
		stores[i] = p.store
	}
	return stores
}
