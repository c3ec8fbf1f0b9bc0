// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package report makes of what was measured: a table for people, CSV, a plot,
// and the verdict on each budget.
package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
)

// Parts of the benchmark that measure handshakes.
const (
	Servers = "servers" // whole servers over loopback
	Memory  = "memory"  // in memory, the tier called directly
)

// Setting is what is the same for all that were compared.
type Setting struct {
	Part    string
	Key     string // "p256", "rsa2048"
	Version string // "1.2", "1.3"
	Resume  bool
	SNI     bool
	Callers int // 1 in memory
	Entries int
}

// String is how tables call it.
func (s Setting) String() string {
	kind, sni := "full", ""
	if s.Resume {
		kind = "resumed"
	}
	if !s.SNI {
		sni = ", no SNI"
	}
	where := fmt.Sprintf("%d callers", s.Callers)
	if s.Part == Memory {
		where = "in memory"
	}
	return fmt.Sprintf("%s, TLS %s, %s, %s, %d entries%s", s.Key, s.Version, kind, where, s.Entries, sni)
}

// Record is what was measured of one candidate in one setting.
type Record struct {
	Setting
	compare.Row
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// WriteCSV writes all records, one a line.
func WriteCSV(w io.Writer, records []Record) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{
		"part", "key", "version", "resumed", "sni", "callers", "entries", "candidate",
		"cpu_us", "cpu_us_key_process", "cpu_ratio", "cpu_ratio_low", "cpu_ratio_high",
		"rounds", "handshakes_per_s", "rate_ratio", "rate_ratio_low", "rate_ratio_high", "p50_us", "p99_us",
	})
	for _, r := range records {
		_ = c.Write([]string{
			r.Part, r.Key, r.Version, strconv.FormatBool(r.Resume), strconv.FormatBool(r.SNI),
			strconv.Itoa(r.Callers), strconv.Itoa(r.Entries), r.Name,
			number(micro(r.CPU)), number(micro(r.Helpers)), number(r.Ratio.Median), number(r.Ratio.Low), number(r.Ratio.High),
			strconv.Itoa(r.Ratio.Rounds), number(r.Rate), number(r.RateRatio.Median), number(r.RateRatio.Low), number(r.RateRatio.High), number(micro(r.P50)), number(micro(r.P99)),
		})
	}
	c.Flush()
	return c.Error()
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
