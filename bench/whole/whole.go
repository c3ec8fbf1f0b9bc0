// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package whole measures whole servers over loopback: CPU time per handshake of
// all their processes, handshakes per second and latency, each beside plain
// crypto/tls in the same round.
package whole

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
	"github.com/tlsd/tlsd/bench/fleet"
	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/bench/material"
)

// Candidate is a server that can be started with what was made for it. The
// first one of a Field is the reference.
type Candidate struct {
	Name     string
	FullOnly bool // resumes no session
	Command  func(f material.Files, addr string) (*exec.Cmd, error)
}

// Way is one way of making handshakes.
type Way struct {
	Version uint16 // tls.VersionTLS12 or tls.VersionTLS13
	Resume  bool
	Callers int
}

// Field is candidates that run side by side, with keys of one type.
type Field struct {
	files   material.Files
	loader  func() (*exec.Cmd, error) // a process that calls load.Serve
	running []running
}

type running struct {
	Candidate
	*fleet.Server
}

// NewField starts all candidates. The caller closes the Field; on error nothing
// is left running.
func NewField(ctx context.Context, f material.Files, loader func() (*exec.Cmd, error), all []Candidate) (_ *Field, err error) {
	field := &Field{files: f, loader: loader}
	defer func() {
		if err != nil {
			err = errors.Join(err, field.Close())
		}
	}()
	for _, c := range all {
		s, err := Start(ctx, c, f)
		if err != nil {
			return nil, err
		}
		field.running = append(field.running, running{c, s})
	}
	return field, nil
}

// Start starts one candidate by itself.
func Start(ctx context.Context, c Candidate, f material.Files) (*fleet.Server, error) {
	addr, err := fleet.FreeAddr()
	if err != nil {
		return nil, err
	}
	cmd, err := c.Command(f, addr)
	if err != nil {
		return nil, err
	}
	s, err := fleet.Start(ctx, cmd, addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return s, nil
}

// Close ends all servers.
func (f *Field) Close() error {
	var errs []error
	for _, s := range f.running {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// Run compares the candidates: each that can has a turn in each round.
func (f *Field) Run(ctx context.Context, w Way, rounds int, turn time.Duration) ([]compare.Row, error) {
	var contenders []compare.Contender
	for _, r := range f.fit(w) {
		contenders = append(contenders, compare.Contender{Name: r.Name, Measure: func(context.Context) (compare.Sample, error) {
			return f.measure(r.Server, f.job(r, w, turn))
		}})
	}
	return compare.Run(ctx, rounds, contenders)
}

// fit returns who can make such handshakes.
func (f *Field) fit(w Way) (able []running) {
	for _, r := range f.running {
		if !w.Resume || !r.FullOnly {
			able = append(able, r)
		}
	}
	return able
}

func (f *Field) job(r running, w Way, turn time.Duration) load.Job {
	return load.Job{
		Addr: r.Addr, Name: material.Name, CA: f.files.CA,
		Version: w.Version, Resume: w.Resume, Callers: w.Callers, Duration: turn,
	}
}

// measure has the job done by a process of its own and counts what the server
// spends meanwhile.
func (f *Field) measure(s *fleet.Server, j load.Job) (compare.Sample, error) {
	var before fleet.CPU
	result, err := f.load(j, func() (err error) {
		before, err = s.CPU()
		return err
	})
	if err != nil {
		return compare.Sample{}, err
	}
	after, err := s.CPU()
	if err != nil {
		return compare.Sample{}, err
	}
	n := time.Duration(result.Handshakes)
	spent := after.Sub(before)
	return compare.Sample{
		CPU: spent.Total() / n, Helpers: spent.Others / n,
		Rate: result.Rate(), P50: result.P50, P99: result.P99,
	}, nil
}

// load has the job done by a process of its own.
func (f *Field) load(j load.Job, begin func() error) (load.Result, error) {
	cmd, err := f.loader()
	if err != nil {
		return load.Result{}, err
	}
	return load.Start(cmd, j, begin)
}
