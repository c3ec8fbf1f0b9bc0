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

// everything runs what the budgets are judged by and writes results: CSV and a
// plot into a directory, table and plot into a page.
func everything(ctx context.Context, args []string, stdout io.Writer) error {
	f := flags("all")
	out := f.String("out", "bench/results", "directory for results.csv and cpu.svg")
	page := f.String("page", "README.md", "page with marks to write the table between; empty: none")
	pace := f.String("pace", "-rounds=10 -turn=1500ms", "flags of each measurement")
	if err := f.Parse(args); err != nil {
		return err
	}
	busy := report.Busy()
	records, err := measureAll(ctx, strings.Fields(*pace), stdout)
	if err != nil {
		return err
	}
	machine := fmt.Sprintf("%s; load average before the run: %s", report.Machine(), busy)
	table := report.Table(records)
	fmt.Fprintf(stdout, "\n%s\n\n%s", machine, table)
	if err := writeResults(*out, machine, records); err != nil {
		return err
	}
	if *page == "" {
		return nil
	}
	plot, err := filepath.Rel(filepath.Dir(*page), filepath.Join(*out, "cpu.svg"))
	if err != nil {
		return err
	}
	return report.WritePage(*page, fmt.Sprintf("%s\nMeasured on %s.\n\n![CPU per full handshake beside crypto/tls](%s)\n", table, machine, plot))
}

// measureAll makes the measurements that the budgets need.
func measureAll(ctx context.Context, pace []string, stdout io.Writer) (all []report.Record, err error) {
	for _, m := range []struct {
		run  func(context.Context, []string, io.Writer) ([]report.Record, error)
		args []string
	}{
		{servers, []string{"-nginx", "-library", "-http"}},
		{servers, []string{"-only", "pkixcached", "-key", "p256", "-callers", "32", "-resume", "yes", "-version", "1.3,1.2", "-http"}},
		{inMemory, []string{"-jdk"}},
		{inMemory, []string{"-entries", "10,1000", "-sni", "yes,no", "-only", "pkixcached,sunx509"}},
		{inMemory, []string{"-resume", "yes", "-version", "1.3,1.2"}},
	} {
		records, err := m.run(ctx, slices.Concat(pace, m.args), stdout)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

func writeResults(dir, machine string, records []report.Record) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "results.csv"), func(w io.Writer) error { return report.WriteCSV(w, records) }); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "cpu.svg"), func(w io.Writer) error {
		title := "CPU per full TLS 1.3 handshake, all processes, beside crypto/tls with its key in one process"
		return report.WriteSVG(w, title, records, []string{report.Plain, "nginx", "tlsd sunx509", "tlsd pkixcached", "tlsd openssl"})
	})
}

// writeFile replaces a file by what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
