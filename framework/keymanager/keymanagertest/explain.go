// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"errors"
	"maps"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// explain asks all questions of choice once more: what is explained has to be
// what is selected, every entry has to be judged, and nothing rejected without
// a reason.
func (s suite) explain(t *testing.T) {
	for _, sc := range scenarios(newCA(t)) {
		t.Run(sc.name, func(t *testing.T) {
			var sources []keymanager.Source
			entries := map[place]int{}
			for i, builder := range sc.builders {
				sources = append(sources, newStore(t, builder...).source())
				for _, e := range builder {
					entries[place{i, e.Alias}]++
				}
			}
			km := s.open(t, sc.options, sources...)
			explainer, ok := km.(keymanager.Explainer)
			if !ok {
				t.Skipf("%T does not explain", km)
			}
			for _, q := range sc.questions {
				t.Run(q.name, func(t *testing.T) {
					verdicts, err := explainer.Explain(t.Context(), q.hello)
					if err != nil {
						t.Fatalf("explain: %v", err)
					}
					sameAsSelected(t, km, q.hello, verdicts)
					judged := map[place]int{}
					for i, v := range verdicts {
						judged[place{v.Builder, v.Alias}]++
						checkVerdict(t, v, i == 0)
					}
					if !maps.Equal(entries, judged) {
						t.Errorf("verdicts on %v, entries are %v", judged, entries)
					}
				})
			}
		})
	}
}

type place struct {
	builder int
	alias   string
}

func sameAsSelected(t *testing.T, km keymanager.KeyManager, h *keymanager.Hello, verdicts []keymanager.Verdict) {
	t.Helper()
	cred, err := km.Select(t.Context(), h)
	winner, ok := keymanager.Winner(verdicts)
	switch {
	case errors.Is(err, keymanager.ErrNoCredential):
		if ok {
			t.Errorf("%q is explained to win, and nothing is selected", winner.Alias)
		}
	case err != nil:
		t.Errorf("select: %v", err)
	case !ok || winner.Builder != cred.Builder || winner.Alias != cred.Alias:
		t.Errorf("%q of builder %d is selected, and explained (%v) is %q of builder %d", cred.Alias, cred.Builder, ok, winner.Alias, winner.Builder)
	}
}

// checkVerdict checks that a verdict is complete.
func checkVerdict(t *testing.T, v keymanager.Verdict, first bool) {
	t.Helper()
	if (v.Rule == "") != (v.Reason == "") {
		t.Errorf("verdict on %q: rule %q, reason %q", v.Alias, v.Rule, v.Reason)
	}
	wins := first && !v.Out
	if v.Rule == "" && (!wins || v.Class != "ok") || wins && v.Class == "ok" && v.Rule != "" {
		t.Errorf("verdict on %q: class %q, rule %q, first %v, out %v", v.Alias, v.Class, v.Rule, first, v.Out)
	}
	if wins && v.Scheme == 0 {
		t.Errorf("verdict on %q: it wins without a scheme", v.Alias)
	}
}
