// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tlsd/tlsd/bench/report"
	"github.com/tlsd/tlsd/bench/scale"
	"github.com/tlsd/tlsd/bench/whole"
)

// scalePlan is what is measured of growth.
type scalePlan struct {
	tier                 string
	entries, connections []string
	reload, callers      int
	build                string
	dir                  string
}

// growth measures how tlsd grows as args say, and prints what it finds: with
// entries, with idle connections, and under a reload.
func growth(ctx context.Context, args []string, stdout io.Writer) (grids []report.Grid, err error) {
	p, f := &scalePlan{}, flags("scale")
	f.StringVar(&p.tier, "tier", "pkixcached", "tier")
	f.list(&p.entries, "entries", "1,10,100,1000", "entries of keystores; each takes the time of four key derivations")
	f.list(&p.connections, "connections", "1000", "idle connections")
	f.IntVar(&p.reload, "reload", 1000, "entries of the keystore that is reloaded under handshakes")
	f.IntVar(&p.callers, "callers", 4, "clients at once during that reload")
	f.StringVar(&p.build, "tlsd", "", "PATH of the executable (default: tlsd is built)")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if tierNamed(p.tier) == nil {
		return nil, fmt.Errorf("flag -tier: there is no tier %q", p.tier)
	}
	if p.dir, err = os.MkdirTemp("", "tlsbench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.dir)
	if p.build == "" {
		p.build = filepath.Join(p.dir, "tlsd")
		if err := build(p.build); err != nil {
			return nil, err
		}
	}
	for _, measure := range []func(context.Context) (report.Grid, error){p.grow, p.idle, p.disturb} {
		g, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		g.Print(stdout)
		grids = append(grids, g)
	}
	return grids, nil
}

func (p *scalePlan) tlsd() whole.Candidate { return whole.Tlsd("tlsd", p.build, p.tier) }

func (p *scalePlan) grow(ctx context.Context) (report.Grid, error) {
	g := report.Grid{
		Title:  fmt.Sprintf("`%s` with P-256 entries of 10,000 iterations each", p.tier),
		Header: []string{"entries", "start", "reload, all entries new", "selection by name", "front MB", "key process MB"},
	}
	for _, entries := range p.entries {
		n, dir, err := p.place("grow-", entries)
		if err != nil {
			return g, err
		}
		row, err := scale.Grow(ctx, p.tlsd(), tierNamed(p.tier), dir, n)
		if err != nil {
			return g, err
		}
		g.Rows = append(g.Rows, []string{
			entries, short(row.Start), short(row.Reload), short(row.Selection), megabytes(row.Front), megabytes(row.Key),
		})
	}
	return g, nil
}

func (p *scalePlan) idle(ctx context.Context) (report.Grid, error) {
	g := report.Grid{Title: "Idle connections, all processes", Header: []string{"connections", "server", "KB each"}}
	files, err := makeFiles(p.dir, "p256", 1)
	if err != nil {
		return g, err
	}
	for _, connections := range p.connections {
		n, err := strconv.Atoi(connections)
		if err != nil {
			return g, fmt.Errorf("%q is no number", connections)
		}
		for _, c := range []whole.Candidate{whole.Self(partPlain, partPlain), whole.Self(partHTTP, partHTTP), p.tlsd()} {
			i, err := scale.Idles(ctx, c, files, n)
			if err != nil {
				return g, err
			}
			g.Rows = append(g.Rows, []string{connections, i.Name, fmt.Sprintf("%.1f", float64(i.Each)/1000)})
		}
	}
	return g, nil
}

func (p *scalePlan) disturb(ctx context.Context) (report.Grid, error) {
	g := report.Grid{
		Title:  fmt.Sprintf("Full handshakes of %d callers while `%s` reloads", p.callers, p.tier),
		Header: []string{"entries", "reload", "p99 outside", "p99 during"},
	}
	_, dir, err := p.place("reload-", strconv.Itoa(p.reload))
	if err != nil {
		return g, err
	}
	d, err := scale.Disturb(ctx, p.tlsd(), func() (*exec.Cmd, error) { return self(partLoad) }, dir, p.reload, p.callers)
	if err != nil {
		return g, err
	}
	g.Rows = [][]string{{strconv.Itoa(d.Entries), short(d.Reload), short(d.Outside), short(d.During)}}
	return g, nil
}

// place makes a directory for a keystore of so many entries.
func (p *scalePlan) place(prefix, entries string) (int, string, error) {
	n, err := strconv.Atoi(entries)
	if err != nil || n < 1 {
		return 0, "", fmt.Errorf("%q is no number of entries", entries)
	}
	dir := filepath.Join(p.dir, prefix+entries)
	return n, dir, os.Mkdir(dir, 0o700)
}

// short returns a duration of three digits or so.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
