// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/tlsd/tlsd/bench/compare"
)

// Names of candidates that budgets speak of.
const (
	Plain      = "crypto/tls"
	Derivation = "key derivation" // not handshakes: PBKDF2 as often as a key needs it
)

// Budget is what tlsd is to keep to on any machine: a ratio of what one run showed,
// and its bounds.
type Budget struct {
	What        string
	Text        string // the bounds as people read them
	Least, Most float64

	figure func(found) figure
}

// figure is a ratio, and where it lies with 95 % confidence.
type figure struct{ value, low, high float64 }

// notMeasured is what a run didn't show.
func notMeasured() figure { return figure{math.NaN(), math.NaN(), math.NaN()} }

func (f figure) measured() bool { return !math.IsNaN(f.value) }

const anyMuch = math.MaxFloat64

// Budgets are the project's.
func Budgets() []Budget {
	return []Budget{
		{"handshakes/s, `pkixcached` : `sunx509`, 1 to 1,000 entries", "≥ 0.97", 0.97, anyMuch,
			func(f found) figure { return f.lowest("pkixcached", "sunx509", full("1.3")) }},
		{"CPU of front and key process : crypto/tls with its key, RSA-2048, 32 callers", "≤ 1.10", 0, 1.10, cpu("tlsd pkixcached", "rsa2048", 32)},
		{"the same, P-256, 32 callers", "≤ 1.22", 0, 1.22, cpu("tlsd pkixcached", "p256", 32)},
		{"the same, P-256, 4 callers", "≤ 1.40", 0, 1.40, cpu("tlsd pkixcached", "p256", 4)},
		{"the same with the plugin `openssl`, RSA-2048, 32 callers", "≤ 0.62", 0, 0.62, cpu("tlsd openssl", "rsa2048", 32)},
		{"handshakes/s in memory, `pkixcached` : JDK 25 SunX509", "≥ 3.5", 3.5, anyMuch,
			func(f found) figure { return f.lowest("pkixcached", "JDK 25 SunX509", full("1.3")) }},
		{"the same, `pkix` : JDK 25 PKIX", "≥ 1.5", 1.5, anyMuch,
			func(f found) figure { return f.lowest("pkix", "JDK 25 PKIX", full("1.3")) }},
		{"resumed handshakes/s in memory, TLS 1.3, each tier : crypto/tls", "≥ 0.98", 0.98, anyMuch,
			func(f found) figure { return f.slowest(resumed("1.3"), "pkixcached", "sunx509", "pkix") }},
		{"the same, TLS 1.2, `pkixcached` and `sunx509`", "≥ 0.98", 0.98, anyMuch,
			func(f found) figure { return f.slowest(resumed("1.2"), "pkixcached", "sunx509") }},
		{"what `pkix` costs beyond `pkixcached` : one key derivation", "1, within noise", 0.90, 1.10, derivations},
	}
}

func full(version string) func(Setting) bool {
	return func(s Setting) bool { return s.Part == Memory && s.Version == version && !s.Resume }
}

func resumed(version string) func(Setting) bool {
	return func(s Setting) bool { return s.Part == Memory && s.Version == version && s.Resume }
}

// cpu is the ratio of a candidate to the reference.
func cpu(name, key string, callers int) func(found) figure {
	return func(f found) figure {
		for _, r := range f {
			if r.Part == Servers && r.Key == key && r.Callers == callers && r.Version == "1.3" && !r.Resume && r.Entries == 1 && r.Name == name {
				return figure{r.Ratio.Median, r.Ratio.Low, r.Ratio.High}
			}
		}
		return notMeasured()
	}
}

// derivations is how many key derivations lie between the two tiers, each being
// measured beside crypto/tls.
func derivations(f found) figure {
	for s, rows := range f.settings(full("1.3")) {
		pkix, cached, one := rows["pkix"].Ratio, rows["pkixcached"].Ratio, rows[Derivation].Ratio
		if s.Entries == 1 && pkix.Median > 0 && cached.Median > 0 && one.Median > 0 {
			n := (pkix.Median - cached.Median) / one.Median
			off := math.Hypot(math.Hypot(halfOf(pkix), halfOf(cached))/one.Median, n*halfOf(one)/one.Median)
			return figure{n, n - off, n + off}
		}
	}
	return notMeasured()
}

// halfOf is half of what a median lies within.
func halfOf(s compare.Spread) float64 { return (s.High - s.Low) / 2 }

// found is what a run found.
type found []Record

// settings returns what was found of each candidate, by settings.
func (f found) settings(wanted func(Setting) bool) map[Setting]map[string]Record {
	all := map[Setting]map[string]Record{}
	for _, r := range f {
		if !wanted(r.Setting) {
			continue
		}
		if all[r.Setting] == nil {
			all[r.Setting] = map[string]Record{}
		}
		all[r.Setting][r.Name] = r
	}
	return all
}

// lowest returns the lowest ratio of rates of two candidates in any setting that
// has both, each as it compares to the reference beside it.
func (f found) lowest(one, other string, wanted func(Setting) bool) figure {
	least := notMeasured()
	for _, rows := range f.settings(wanted) {
		a, b := rows[one].RateRatio, rows[other].RateRatio
		if a.Median <= 0 || b.Median <= 0 {
			continue
		}
		q := a.Median / b.Median
		off := q * math.Hypot(halfOf(a)/a.Median, halfOf(b)/b.Median)
		if !least.measured() || q < least.value {
			least = figure{q, q - off, q + off}
		}
	}
	return least
}

// slowest returns the lowest ratio of several candidates to crypto/tls, if all
// of them were measured.
func (f found) slowest(wanted func(Setting) bool, names ...string) figure {
	least := notMeasured()
	for _, name := range names {
		r := f.lowest(name, Plain, wanted)
		if !r.measured() {
			return r
		}
		if !least.measured() || r.value < least.value {
			least = r
		}
	}
	return least
}

// Verdict says what a run showed of b: the figure, with what it lies between, and
// whether b was met.
func (b Budget) Verdict(records []Record) (figure, verdict string) {
	f := b.figure(records)
	if !f.measured() {
		return "–", "not measured"
	}
	verdict = "met"
	if f.value < b.Least || f.value > b.Most {
		verdict = "**not met**"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.value, f.low, f.high), verdict
}

// Table returns the budgets and what a run showed of each, as Markdown.
func Table(records []Record) string {
	var b strings.Builder
	b.WriteString("| what | budget | measured (95 %) | |\n|---|---|---|---|\n")
	for _, budget := range Budgets() {
		figure, verdict := budget.Verdict(records)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", budget.What, budget.Text, figure, verdict)
	}
	return b.String()
}
