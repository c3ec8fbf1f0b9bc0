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
	var outside, during []time.Duration
	for range 10 {
		if err := p99(&outside); err != nil {
			return d, err
		}
	}
	r, err := newReload(s, f)
	if err != nil {
		return d, err
	}
	if d.Reload, err = r.await(ctx, func() error { return p99(&during) }); err != nil {
		return d, err
	}
	d.Outside, d.During, d.Turns = middle(outside), middle(during), len(during)
	return d, nil
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
