// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tlsd/tlsd/bench/report"
	"github.com/tlsd/tlsd/bench/where"
	"github.com/tlsd/tlsd/bench/whole"
)

// wherePlan is how it is looked at where the time goes.
type wherePlan struct {
	tier, key, build, out string
	callers               int
	turn                  time.Duration
	dir                   string
}

// process is one of those that are looked at.
type process struct {
	name       string
	handshakes int
	stacks     []where.Stack
	calls      map[string]float64 // of a handshake
}

const (
	frequency  = 997 // of perf's samples in Hz: no timer of a kernel has it
	leastCalls = 0.1 // of a handshake; rarer system calls are not shown
)

// whereTo shows where the time of crypto/tls and of tlsd goes, by perf and strace:
// tables, and flame graphs in a directory. Without these programs it shows
// nothing.
func whereTo(ctx context.Context, args []string, stdout io.Writer) (grids []report.Grid, err error) {
	p, f := &wherePlan{}, flags("where")
	f.StringVar(&p.tier, "tier", "pkixcached", "tier")
	f.StringVar(&p.key, "key", "p256", "key type")
	f.StringVar(&p.build, "tlsd", "", "PATH of the executable (default: tlsd is built)")
	f.StringVar(&p.out, "out", "bench/results", "directory for flame graphs")
	f.IntVar(&p.callers, "callers", 4, "clients at once")
	f.DurationVar(&p.turn, "turn", 5*time.Second, "time that each is watched")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for _, program := range []string{"perf", "strace"} {
		if _, err := exec.LookPath(program); err != nil {
			fmt.Fprintf(stdout, "\nnot shown where the time goes: %s is not installed\n", program)
			return nil, nil
		}
	}
	if p.dir, err = os.MkdirTemp("", "tlsbench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.dir)
	field, err := p.field(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	if grids, err = p.look(ctx, field); err != nil {
		return nil, err
	}
	printAll(stdout, grids)
	return grids, nil
}

func (p *wherePlan) field(ctx context.Context) (*whole.Field, error) {
	if p.build == "" {
		p.build = filepath.Join(p.dir, "tlsd")
		if err := build(p.build); err != nil {
			return nil, err
		}
	}
	plain := filepath.Join(p.dir, "tlsbench")
	if err := buildSelf(plain); err != nil {
		return nil, err
	}
	files, err := makeFiles(p.dir, p.key, 1)
	if err != nil {
		return nil, err
	}
	return whole.NewField(ctx, files, func() (*exec.Cmd, error) { return self(partLoad) },
		[]whole.Candidate{whole.Part(partPlain, plain, partPlain), whole.Tlsd("tlsd", p.build, p.tier)})
}

// look watches both servers: once by perf, and process by process by strace.
func (p *wherePlan) look(ctx context.Context, field *whole.Field) ([]report.Grid, error) {
	plain, front, key := &process{name: partPlain}, &process{name: "front"}, &process{name: "key process"}
	all := []*process{plain, front, key}
	perf := fmt.Sprintf(`perf record -q -F %d -g -p "$FRONT${OTHERS:+,$OTHERS}" -o '%s'/"$NAME"`, frequency, p.dir)
	if err := p.watch(ctx, field, perf, func(w whole.Watched, of []*process) error { return p.readStacks(ctx, w, of) }, all); err != nil {
		return nil, err
	}
	times := timesOf(all)
	for i, pid := range []string{"FRONT", "OTHERS"} {
		strace := fmt.Sprintf(`strace -c -f -p "$%s" -o '%s'/"$NAME"`, pid, p.dir)
		if err := p.watch(ctx, field, strace, func(w whole.Watched, of []*process) error { return p.readCalls(w, of, i) }, all); err != nil {
			return nil, err
		}
	}
	for _, of := range all {
		if err := p.flame(of); err != nil {
			return nil, err
		}
	}
	return []report.Grid{times, callsOf(all)}, nil
}

// watch has a command watch a turn of each server, and what it wrote read: of the
// reference's process, and of tlsd's two.
func (p *wherePlan) watch(ctx context.Context, field *whole.Field, command string, read func(whole.Watched, []*process) error, all []*process) error {
	var said strings.Builder
	watched, err := field.Watch(ctx, whole.Way{Version: tls.VersionTLS13, Callers: p.callers}, p.turn, command, &said)
	if err != nil {
		return err
	}
	for i, of := range [][]*process{all[:1], all[1:]} {
		for _, process := range of {
			process.handshakes = watched[i].Handshakes
		}
		if err := read(watched[i], of); err != nil {
			return fmt.Errorf("%w: %s said: %s", err, command, said.String())
		}
	}
	return nil
}

// file is where a watching command has written.
func (p *wherePlan) file(w whole.Watched) string { return filepath.Join(p.dir, w.FileName()) }

// readStacks reads perf's samples: of the first process, and of all others.
func (p *wherePlan) readStacks(ctx context.Context, w whole.Watched, of []*process) error {
	out, err := exec.CommandContext(ctx, "perf", "script", "-F", "pid,ip,sym", "-i", p.file(w)).Output()
	if err != nil {
		return fmt.Errorf("perf script: %w", err)
	}
	stacks, err := where.ReadStacks(bytes.NewReader(out))
	for pid, s := range stacks {
		i := 0
		if pid != w.Front {
			i = len(of) - 1
		}
		of[i].stacks = append(of[i].stacks, s...)
	}
	return err
}

// readCalls reads strace's counts of one process, where there is such a one.
func (p *wherePlan) readCalls(w whole.Watched, of []*process, i int) error {
	if i >= len(of) {
		return nil
	}
	f, err := os.Open(p.file(w))
	if err != nil {
		return err
	}
	defer f.Close()
	calls, err := where.ReadCalls(f)
	of[i].calls = perHandshake(calls, w.Handshakes)
	return err
}

func perHandshake(counts map[string]int, handshakes int) map[string]float64 {
	each := map[string]float64{}
	for what, n := range counts {
		each[what] = float64(n) / float64(max(1, handshakes))
	}
	return each
}

func (p *wherePlan) flame(of *process) error {
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	name := "flame-" + strings.NewReplacer("/", "-", " ", "-").Replace(of.name) + ".svg"
	return writeFile(filepath.Join(p.out, name), func(w io.Writer) error {
		return where.WriteFlame(w, fmt.Sprintf("%s, %s, full TLS 1.3 handshakes of %d callers", of.name, p.key, p.callers), of.stacks)
	})
}

// timesOf says what each process does in a handshake. A sample is the time
// between two of them.
func timesOf(all []*process) report.Grid {
	g := report.Grid{Title: "CPU time of a full handshake, in µs", Header: []string{"what"}}
	shares := make([]map[string]float64, len(all))
	for i, of := range all {
		g.Header = append(g.Header, of.name)
		shares[i] = perHandshake(where.Shares(of.stacks), of.handshakes)
	}
	sums := make([]float64, len(all))
	for _, kind := range where.Kinds() {
		row := []string{kind}
		for i := range all {
			us := shares[i][kind] * 1e6 / frequency
			sums[i] += us
			row = append(row, report.Figure("%.1f", us))
		}
		g.Rows = append(g.Rows, row)
	}
	last := []string{"all"}
	for _, sum := range sums {
		last = append(last, report.Figure("%.0f", sum))
	}
	g.Rows = append(g.Rows, last)
	return g
}

// callsOf says which system calls a handshake takes, the most frequent first.
func callsOf(all []*process) report.Grid {
	g := report.Grid{Title: "System calls of a full handshake (strace slows everything down, so that there are more waits than otherwise)", Header: []string{"system call"}}
	most := map[string]float64{}
	for _, of := range all {
		g.Header = append(g.Header, of.name)
		for call, n := range of.calls {
			most[call] = max(most[call], n)
		}
	}
	names := slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), strings.Compare(a, b))
	})
	for _, call := range names {
		if most[call] < leastCalls {
			break
		}
		row := []string{call}
		for _, of := range all {
			row = append(row, report.Figure("%.1f", of.calls[call]))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
