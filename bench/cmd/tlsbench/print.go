// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
	"github.com/tlsd/tlsd/bench/whole"
)

// printRows writes one way's table for people.
func printRows(w io.Writer, key string, way whole.Way, rows []compare.Row) {
	fmt.Fprintf(w, "\n%s, %s\n", key, way)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "candidate\tCPU µs\tof it key\tratio\tquartiles\thandshakes/s\tratio\tp50 ms\tp99 ms\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.3f\t%.3f–%.3f\t%.0f\t%.3f\t%.2f\t%.2f\t\n", r.Name,
			micro(r.CPU), micro(r.Helpers), r.Ratio.Median, r.Ratio.Low, r.Ratio.High,
			r.Rate, r.RateRatio.Median, micro(r.P50)/1000, micro(r.P99)/1000)
	}
	t.Flush()
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
