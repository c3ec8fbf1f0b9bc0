// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestClockChangesTheChoice: certificates that end and begin while tlsd runs,
// which sees no change of its keystore and is told nothing. What must be served
// follows from the clock before and after each handshake.
func TestClockChangesTheChoice(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{})
	ends := time.Now().Add(8 * time.Second).Truncate(time.Second) // certificates know seconds
	begins := ends.Add(4 * time.Second)
	issue := func(name string, from, to time.Time) *testca.Cert {
		return ca.Issue(t, testca.Spec{Name: name, DNS: []string{"w.test"}, NotBefore: from, NotAfter: to})
	}
	s := storeWith(t,
		issue("beginning", begins, time.Time{}),
		issue("ending", time.Time{}, ends),
		issue("steady", time.Time{}, time.Time{}))
	at := func(now time.Time) string {
		switch {
		case !now.Before(begins):
			return "beginning"
		case !now.After(ends): // the last second counts (RFC 5280, 4.1.2.5)
			return "ending"
		}
		return "steady"
	}
	daemons := map[string]*daemon{}
	for _, tier := range []string{"pkix", "pkixcached"} {
		daemons[tier] = start(t, append(s.args(), "--keymanager", tier)...)
	}
	seen := map[string][]string{}
	for time.Now().Before(begins.Add(time.Second)) {
		for tier, d := range daemons {
			before := at(time.Now())
			got := served(t, d, "w.test").Subject.CommonName
			if want := []string{before, at(time.Now())}; !slices.Contains(want, got) {
				t.Errorf("%s: %q is served, want one of %q", tier, got, want)
			}
			if !slices.Contains(seen[tier], got) {
				seen[tier] = append(seen[tier], got)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	for tier, names := range seen { // a machine that stood still may have missed one
		if len(names) < 2 || names[len(names)-1] != "beginning" {
			t.Errorf("%s: served %q, want what changes with the clock", tier, names)
		}
	}
}
