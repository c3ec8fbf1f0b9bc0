// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"crypto/tls"
	"errors"
	"os/exec"
	"slices"
	"time"

	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/whole"
)

// Disturbance is what full handshakes notice of a reload.
type Disturbance struct {
	Entries         int
	Callers         int
	Reload          time.Duration
	Outside, During time.Duration // the median of turns' p99
	Turns           int           // during the reload
}

// turn is short, so that many fall into a reload.
const turn = 300 * time.Millisecond

// Disturb measures the latency of handshakes outside a reload and during it.
// loader returns a process that calls load.Serve.
func Disturb(ctx context.Context, c whole.Candidate, loader func() (*exec.Cmd, error), dir string, entries, callers int) (d Disturbance, err error) {
	d.Entries, d.Callers = entries, callers
	f, err := material.Make(dir, material.Spec{Entries: entries, Renewed: true})
	if err != nil {
		return d, err
	}
	s, err := whole.Start(ctx, c, f)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	p99 := func(to *[]time.Duration) error {
		cmd, err := loader()
		if err != nil {
			return err
		}
		r, err := load.Start(cmd, load.Job{
			Addr: s.Addr, Name: material.Name, CA: f.CA, Version: tls.VersionTLS13, Callers: callers, Duration: turn,
		}, func() error { return nil })
		*to = append(*to, r.P99)
		return err
	}
	var outside []time.Duration
	for range 10 {
		if err := p99(&outside); err != nil {
			return d, err
		}
	}
	r, err := newReload(s, f)
	if err != nil {
		return d, err
	}
	during, err := d.watch(ctx, r, p99)
	if err != nil {
		return d, err
	}
	d.Outside, d.During, d.Turns = middle(outside), middle(during), len(during)
	return d, nil
}

// watch has turns while the server reloads, of which the last one, that outlasts
// the reload, counts only if it is the first too.
func (d *Disturbance) watch(ctx context.Context, r *reload, p99 func(*[]time.Duration) error) (during []time.Duration, err error) {
	type end struct {
		took time.Duration
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		took, err := r.await(ctx, turn/10)
		ended <- end{took, err}
	}()
	for {
		if err := p99(&during); err != nil {
			return nil, errors.Join(err, (<-ended).err)
		}
		select {
		case e := <-ended:
			d.Reload = e.took
			return during[:max(1, len(during)-1)], e.err
		default:
		}
	}
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
