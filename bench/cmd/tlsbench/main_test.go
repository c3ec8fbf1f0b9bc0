// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/bench/report"
	"github.com/tlsd/tlsd/framework/plugin"
)

// TestMain lets the test's executable play the parts that tlsbench's does.
func TestMain(m *testing.M) {
	plugin.Main(tiers()...)
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// skipInShort leaves out what the race detector makes slow and finds nothing in:
// one process is started after the other.
func skipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("short")
	}
}

// What is measured so shortly says nothing; that everything works is all that
// is looked at.
func TestServers(t *testing.T) {
	tlsd := filepath.Join(t.TempDir(), "tlsd")
	if err := build(tlsd); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"-key rsa2048 -version 1.3 -resume no",
		"-key p256 -version 1.2,1.3 -resume no,yes",
	} {
		args := append(strings.Fields(args), "-only", "pkixcached", "-callers", "2", "-rounds", "1", "-turn", "50ms", "-http", "-library", "-tlsd", "tlsd="+tlsd)
		records, err := servers(t.Context(), args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range records {
			seen[r.Name] = true
			isolated := strings.Contains(r.Name, "pkixcached")
			if r.CPU <= 0 || r.Rate <= 0 || r.P99 < r.P50 || r.P50 <= 0 || r.Ratio.Median <= 0 ||
				isolated && !r.Resume && r.Helpers == 0 || !isolated && r.Helpers > 0 {
				t.Errorf("%s: %+v", r.Setting, r.Row)
			}
		}
		if want := []string{"crypto/tls", "net/http", "library pkixcached", "tlsd pkixcached"}; len(seen) != len(want) {
			t.Errorf("measured %v, want %v", seen, want)
		}
	}
}

func TestInMemory(t *testing.T) {
	skipInShort(t)
	records, err := inMemory(t.Context(), strings.Fields("-rounds 1 -turn 20ms -resume no,yes -version 1.2,1.3"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 2 * 5; len(records) != want {
		t.Errorf("%d records, want %d", len(records), want)
	}
	if table := report.Table(records); strings.Count(table, "not measured") != 6 {
		t.Errorf("of what was measured the table says\n%s", table)
	}
}

func TestServersAreWatched(t *testing.T) {
	skipInShort(t)
	var out strings.Builder
	_, err := servers(t.Context(), []string{
		"-key", "p256", "-callers", "1", "-rounds", "1", "-turn", "50ms", "-only", "", "-http",
		"-watch", "echo watch $NAME $FRONT",
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"crypto-tls", "net-http"} {
		if !strings.Contains(out.String(), "watch "+name) {
			t.Errorf("%s was not watched:\n%s", name, out.String())
		}
	}
}

func TestGrowth(t *testing.T) {
	skipInShort(t)
	grids, err := growth(t.Context(), strings.Fields("-entries 1,5 -connections 20 -reload 5 -callers 1"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i, rows := range []int{2, 3, 1} {
		if len(grids[i].Rows) != rows {
			t.Errorf("%s: %v", grids[i].Title, grids[i].Rows)
		}
	}
}

func TestResultsAreWritten(t *testing.T) {
	skipInShort(t)
	records, err := inMemory(t.Context(), strings.Fields("-rounds 1 -turn 20ms"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	grid := report.Grid{Title: "growth", Header: []string{"entries"}, Rows: [][]string{{"1"}}}
	r := results{machine: "a machine", records: records, growth: []report.Grid{grid, grid, grid}, where: []report.Grid{grid}}
	dir := t.TempDir()
	out := filepath.Join(dir, "results")
	if err := r.write(out); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(out, "*")); len(files) != 5 {
		t.Errorf("wrote %v", files)
	}
	pages := map[string]int{"README.md": 1, "docs/performance.md": 2} // the project's own have the marks
	for page := range pages {
		b, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, page)
		if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), os.WriteFile(copied, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.show(dir, out); err != nil {
		t.Fatal(err)
	}
	for page, places := range pages {
		if b, _ := os.ReadFile(filepath.Join(dir, page)); strings.Count(string(b), "Measured on a machine") != places {
			t.Errorf("%s does not name the machine %d times", page, places)
		}
	}
}
