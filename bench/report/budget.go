// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strings"
)

// Names of candidates that budgets speak of.
const (
	Plain      = "crypto/tls"
	Derivation = "key derivation" // not handshakes: PBKDF2 as often as a key needs it
)

// Budget is a bound that tlsd is to keep on any machine: a ratio of what one run
// showed.
type Budget struct {
	What  string
	Text  string // the bound as people read it
	Bound float64
	Least bool // the figure is to be at least Bound, else at most

	figure func(found) float64 // NaN: the run didn't show it
}

// Budgets are the project's.
func Budgets() []Budget {
	return []Budget{
		{"handshakes/s, `pkixcached` : `sunx509`, 1 to 1,000 entries", "≥ 0.97", 0.97, true,
			func(f found) float64 { return f.lowest("pkixcached", "sunx509", full("1.3")) }},
		{"CPU of front and key process : crypto/tls with its key, RSA-2048, 32 callers", "≤ 1.10", 1.10, false, cpu("tlsd pkixcached", "rsa2048", 32)},
		{"the same, P-256, 32 callers", "≤ 1.22", 1.22, false, cpu("tlsd pkixcached", "p256", 32)},
		{"the same, P-256, 4 callers", "≤ 1.40", 1.40, false, cpu("tlsd pkixcached", "p256", 4)},
		{"the same with the plugin `openssl`, RSA-2048, 32 callers", "≤ 0.62", 0.62, false, cpu("tlsd openssl", "rsa2048", 32)},
		{"handshakes/s in memory, `pkixcached` : JDK 25 SunX509", "≥ 3.5", 3.5, true,
			func(f found) float64 { return f.lowest("pkixcached", "JDK 25 SunX509", full("1.3")) }},
		{"the same, `pkix` : JDK 25 PKIX", "≥ 1.5", 1.5, true,
			func(f found) float64 { return f.lowest("pkix", "JDK 25 PKIX", full("1.3")) }},
		{"resumed handshakes/s in memory, TLS 1.3, each tier : crypto/tls", "≥ 0.98", 0.98, true,
			func(f found) float64 { return f.slowest(resumed("1.3"), "pkixcached", "sunx509", "pkix") }},
		{"the same, TLS 1.2, `pkixcached` and `sunx509`", "≥ 0.98", 0.98, true,
			func(f found) float64 { return f.slowest(resumed("1.2"), "pkixcached", "sunx509") }},
		{"what `pkix` costs beyond `pkixcached` : one key derivation", "1, within noise", 1.10, false, derivations},
	}
}

func full(version string) func(Setting) bool {
	return func(s Setting) bool { return s.Part == Memory && s.Version == version && !s.Resume }
}

func resumed(version string) func(Setting) bool {
	return func(s Setting) bool { return s.Part == Memory && s.Version == version && s.Resume }
}

// cpu is the ratio of a candidate to the reference.
func cpu(name, key string, callers int) func(found) float64 {
	return func(f found) float64 {
		for _, r := range f {
			if r.Part == Servers && r.Key == key && r.Callers == callers && r.Version == "1.3" && !r.Resume && r.Entries == 1 && r.Name == name {
				return r.Ratio.Median
			}
		}
		return math.NaN()
	}
}

// derivations is how many key derivations lie between the two tiers.
func derivations(f found) float64 {
	for s, rows := range f.settings(full("1.3")) {
		pkix, cached, one := rows["pkix"], rows["pkixcached"], rows[Derivation]
		if s.Entries == 1 && pkix.CPU > 0 && cached.CPU > 0 && one.CPU > 0 {
			return float64(pkix.CPU-cached.CPU) / float64(one.CPU)
		}
	}
	return math.NaN()
}

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
// has both, each as it compares to the reference round by round.
func (f found) lowest(one, other string, wanted func(Setting) bool) float64 {
	least := math.NaN()
	for _, rows := range f.settings(wanted) {
		a, b := rows[one].RateRatio.Median, rows[other].RateRatio.Median
		if a > 0 && b > 0 && !(least <= a/b) {
			least = a / b
		}
	}
	return least
}

// slowest returns the lowest ratio of several candidates to crypto/tls.
func (f found) slowest(wanted func(Setting) bool, names ...string) float64 {
	least := math.NaN()
	for _, name := range names {
		if r := f.lowest(name, Plain, wanted); !math.IsNaN(r) && !(least <= r) {
			least = r
		}
	}
	return least
}

// Verdict says what a run showed of b: the figure, and whether it was met.
func (b Budget) Verdict(records []Record) (figure, verdict string) {
	f := b.figure(records)
	switch {
	case math.IsNaN(f):
		return "–", "not measured"
	case b.Least && f >= b.Bound, !b.Least && f <= b.Bound:
		return fmt.Sprintf("%.2f", f), "met"
	}
	return fmt.Sprintf("%.2f", f), "**not met**"
}

// Table returns the budgets and what a run showed of each, as Markdown.
func Table(records []Record) string {
	var b strings.Builder
	b.WriteString("| what | budget | measured | |\n|---|---|---|---|\n")
	for _, budget := range Budgets() {
		figure, verdict := budget.Verdict(records)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", budget.What, budget.Text, figure, verdict)
	}
	return b.String()
}
