// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/bench/report"
)

// results are what a run of everything found.
type results struct {
	machine string
	records []report.Record
	growth  []report.Grid // as growth returns them
	where   []report.Grid
}

// everything runs what the budgets are judged by, how tlsd grows, and where the
// time goes. It writes CSV and drawings into a directory, and tables between the
// marks of README.md and docs/performance.md.
func everything(ctx context.Context, args []string, stdout io.Writer) error {
	f := flags("all")
	out := f.String("out", "bench/results", "directory for CSV files and drawings")
	pages := f.String("pages", ".", "directory with README.md and docs/performance.md")
	paces := map[string]*string{
		report.Servers: f.String("servers", "-rounds=20 -turn=300ms", "flags of each measurement of whole servers"),
		report.Memory:  f.String("memory", "-rounds=60 -turn=100ms", "flags of each measurement in memory"),
	}
	growing := f.String("scale", "-entries=1,10,100,1000,10000 -connections=1000,10000", "flags of the measurement of growth")
	if err := f.Parse(args); err != nil {
		return err
	}
	r := results{machine: fmt.Sprintf("%s; load average before the run: %s", report.Machine(), report.Busy())}
	var err error
	if r.records, err = measureAll(ctx, paces, stdout); err != nil {
		return err
	}
	if r.growth, err = growth(ctx, strings.Fields(*growing), stdout); err != nil {
		return err
	}
	if r.where, err = whereTo(ctx, []string{"-out", *out}, stdout); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s\n\n%s", r.machine, report.Table(r.records))
	if err := r.write(*out); err != nil {
		return err
	}
	return r.show(*pages, *out)
}

// show writes what the pages show.
func (r results) show(pages, out string) error {
	readme, performance := filepath.Join(pages, "README.md"), filepath.Join(pages, "docs", "performance.md")
	plot, err := relative(readme, filepath.Join(out, "cpu.svg"))
	if err != nil {
		return err
	}
	budgets := fmt.Sprintf("%s\nMeasured on %s.\n\n![CPU per full handshake beside crypto/tls](%s)\n", report.Table(r.records), r.machine, plot)
	if err := report.WritePage(readme, "budgets", budgets); err != nil {
		return err
	}
	measured := fmt.Sprintf("Measured on %s.\n", r.machine)
	if err := report.WritePage(performance, "results", measured+markdown(append(report.Grids(r.records), r.growth...))); err != nil {
		return err
	}
	if len(r.where) == 0 {
		return nil
	}
	flames, err := filepath.Glob(filepath.Join(out, "flame-*.svg"))
	if err != nil {
		return err
	}
	var links strings.Builder
	for _, f := range flames {
		link, err := relative(performance, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&links, "\n![Flame graph](%s)\n", link)
	}
	return report.WritePage(performance, "where", measured+markdown(r.where)+links.String())
}

func markdown(grids []report.Grid) string {
	var b strings.Builder
	for _, g := range grids {
		fmt.Fprintf(&b, "\n%s", g.Markdown())
	}
	return b.String()
}

// relative returns how a page links to a file.
func relative(page, file string) (string, error) {
	from, err := filepath.Abs(filepath.Dir(page))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// measureAll makes the measurements that the budgets need, with flags for each part
// of them.
func measureAll(ctx context.Context, paces map[string]*string, stdout io.Writer) (all []report.Record, err error) {
	for _, m := range []struct {
		part string
		run  func(context.Context, []string, io.Writer) ([]report.Record, error)
		args []string
	}{
		{report.Servers, servers, []string{"-nginx", "-library", "-http", "-openssl"}},
		{report.Servers, servers, []string{"-only", "pkixcached", "-key", "p256", "-callers", "32", "-resume", "yes", "-version", "1.3,1.2", "-http"}},
		{report.Memory, inMemory, []string{"-jdk"}},
		{report.Memory, inMemory, []string{"-entries", "10,1000", "-sni", "yes,no", "-only", "pkixcached,sunx509"}},
		{report.Memory, inMemory, []string{"-resume", "yes", "-version", "1.3,1.2"}},
	} {
		records, err := m.run(ctx, slices.Concat(strings.Fields(*paces[m.part]), m.args), stdout)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// write writes files into a directory, which it makes.
func (r results) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]func(io.Writer) error{
		"handshakes.csv": func(w io.Writer) error { return report.WriteCSV(w, r.records) },
		"cpu.svg": func(w io.Writer) error {
			title := "CPU per full TLS 1.3 handshake, all processes together (light: the key process); crypto/tls with its key is 1"
			return report.WriteSVG(w, title, r.records, []string{report.Plain, "nginx", "tlsd sunx509", "tlsd pkixcached", "tlsd openssl"})
		},
	}
	for i, name := range []string{"growth.csv", "idle.csv", "reload.csv"} { // as growth returns them
		files[name] = r.growth[i].WriteCSV
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file by what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
