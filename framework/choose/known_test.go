// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestNames: what entries carry, in the spelling that names are looked up by.
func TestNames(t *testing.T) {
	entries := []keymanager.Entry{
		entry("a", testca.SelfSigned(t, testca.Spec{Name: "cn.test", DNS: []string{"A.Test.", "*.W.test", "xn--bcher-kva.test", "bad name"}})),
		entry("b", testca.SelfSigned(t, testca.Spec{Name: "CN.Test", IPs: []net.IP{net.ParseIP("2001:db8::1"), net.IPv4(192, 0, 2, 1)}})),
		entry("c", testca.SelfSigned(t, testca.Spec{DNS: []string{"a.test", "*.0.2.1"}})),
	}
	unusable := entry("d", testca.SelfSigned(t, testca.Spec{DNS: []string{"d.test"}}))
	unusable.Usable = false
	exact, parents, known := mustNew(t, New, keymanager.Env{}, append(entries, unusable)...).Names()
	if want := []string{"192.0.2.1", "2001:db8::1", "a.test", "cn.test", "xn--bcher-kva.test"}; !known || !cmp.Equal(exact, want) {
		t.Errorf("names %q, known %v, want %q", exact, known, want)
	}
	if want := []string{"0.2.1", "w.test"}; !cmp.Equal(parents, want) {
		t.Errorf("parents %q, want %q", parents, want)
	}
	if exact, parents, known := mustNew(t, NewUnchecked, keymanager.Env{}, entries...).Names(); !known || len(exact)+len(parents) > 0 {
		t.Errorf("a chooser that looks at no name has %q and %q, known %v", exact, parents, known)
	}
	if _, _, known := mustNew(t, newAsJDK, keymanager.Env{}, entries...).Names(); known {
		t.Error("the JDK's way to compare names is said to be known")
	}
}

func TestForms(t *testing.T) {
	for name, want := range map[string][2]string{
		"":             {},
		"A.w.Test.":    {"a.w.test", "w.test"},
		"[2001:DB8::]": {"2001:db8::", ""},
		"192.0.2.1":    {"192.0.2.1", ""},
		"b d.w.test":   {},
		"*.w.test":     {},
		"localhost":    {"localhost", ""},
	} {
		if exact, parent := Forms(name); exact != want[0] || parent != want[1] {
			t.Errorf("%q is looked up as %q and %q, want %q", name, exact, parent, want)
		}
	}
}

// TestAnswersDependOnKnownNamesOnly: names that Names doesn't have are all one,
// and so are those that a wildcard covers and no entry has exactly. Whoever keeps
// answers by that gives no other than Select would.
func TestAnswersDependOnKnownNamesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(5, 6))
	strange := []string{"no.test", "*.w.test", "bad name.w.test", "b..w.test", "x.y.x.test", "test", "192.0.2.9", "[2001:db8::9]"}
	for range 2000 {
		entries := w.store(rng)
		now := w.start
		c := mustNew(t, New, w.env(rng, entries, &now), entries...)
		exact, parents, _ := c.Names()
		byName := map[string][]string{"": nil}
		for _, name := range append(strange, "a.w.test", "b.w.test", "c.w.test", "d.w.test", "w.test", "q.x.test", "r.x.test") {
			whole, parent := Forms(name)
			key := ""
			switch {
			case slices.Contains(exact, whole):
				continue
			case slices.Contains(parents, parent):
				key = parent
			}
			byName[key] = append(byName[key], name)
		}
		h := w.hello(rng)
		for key, names := range byName {
			h.ServerName = names[0]
			want := pick(t, c, h)
			for _, h.ServerName = range names[1:] {
				if got := pick(t, c, h); got != want {
					t.Fatalf("%q and %q, both under %q, get %q and %q", h.ServerName, names[0], key, got, want)
				}
			}
		}
	}
}
