// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Grid is a table of texts.
type Grid struct {
	Title  string
	Header []string
	Rows   [][]string
}

// Markdown returns g as a page shows it.
func (g Grid) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", g.Title)
	for i, row := range append([][]string{g.Header}, g.Rows...) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

// WriteCSV writes g, its header first.
func (g Grid) WriteCSV(w io.Writer) error {
	return csv.NewWriter(w).WriteAll(append([][]string{g.Header}, g.Rows...))
}

// Grids returns what was found of handshakes, a table for each setting.
func Grids(records []Record) (grids []Grid) {
	var last Setting
	for _, r := range records {
		if len(grids) == 0 || r.Setting != last {
			last = r.Setting
			grids = append(grids, Grid{Title: r.Setting.String(), Header: []string{
				"candidate", "CPU µs", "of it key process", "ratio", "95 %", "handshakes/s", "p50 ms", "p99 ms",
			}})
		}
		g := &grids[len(grids)-1]
		g.Rows = append(g.Rows, r.cells())
	}
	return grids
}

// cells are the columns of Grids.
func (r Record) cells() []string {
	return []string{
		r.Name, Figure("%.0f", micro(r.CPU)), Figure("%.0f", micro(r.Helpers)), Figure("%.3f", r.Ratio.Median),
		fmt.Sprintf("%.3f–%.3f", r.Ratio.Low, r.Ratio.High), Figure("%.0f", r.Rate), Figure("%.2f", micro(r.P50)/1000), Figure("%.2f", micro(r.P99)/1000),
	}
}

// Figure returns f as format has it, or a dash for what was not measured.
func Figure(format string, f float64) string {
	if f == 0 {
		return "–"
	}
	return fmt.Sprintf(format, f)
}

// Print writes g for a terminal.
func (g Grid) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", g.Title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{g.Header}, g.Rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
}
