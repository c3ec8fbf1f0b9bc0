// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// table is the index for one role over the span of time in which no verdict
// changes: no certificate begins or ends to be valid, no constraint begins to
// deny. It is immutable.
//
// The lists all, exact and wildcard hold the candidates that can win only. Two
// candidates that are alike and of one class differ, for a hello, in their
// names, so of those with the same name only the first can win; there are as
// many of them as there are kinds of keys and chains, however many entries
// there are.
type table struct {
	from, until time.Time // from <= now < until
	denied      schemeSet // that no handshake may be signed by
	unheard     schemeSet // jdkPKIX only: that count as not offered

	all      []standing
	exact    map[string][]standing
	wildcard map[string][]standing // by what follows the asterisk's dot

	every    []standing            // jdkPKIX only, instead of the three above
	aliases  map[string][]standing // by fold; about one for each keystore
	defaults []standing            // entries of the default alias; server role only
}

// table returns the table for role at now, and makes it first where there is
// none.
func (c *Chooser) table(role keymanager.Role, now time.Time) *table {
	slot := &c.tables[roleIndex(role)]
	if t := slot.Load(); t.holds(now) {
		return t
	}
	c.building.Lock()
	defer c.building.Unlock()
	if t := slot.Load(); t.holds(now) {
		return t
	}
	t := c.newTable(role, now)
	slot.Store(t)
	return t
}

func (t *table) holds(now time.Time) bool {
	return t != nil && !now.Before(t.from) && now.Before(t.until)
}

func (c *Chooser) newTable(role keymanager.Role, now time.Time) *table {
	t := &table{
		denied:   c.deniedSchemes(role, now),
		unheard:  c.unheardSchemes(),
		exact:    map[string][]standing{},
		wildcard: map[string][]standing{},
		aliases:  map[string][]standing{},
	}
	t.from, t.until = c.span(now)
	for _, cand := range c.candidates {
		if cand.unusable == nil && c.denies(cand, role, now) == nil {
			t.add(cand.standing(role, now), role, c.defaultAlias)
		}
	}
	return t
}

func (t *table) add(s standing, role keymanager.Role, defaultAlias string) {
	put := func(list []standing) []standing {
		beaten := slices.ContainsFunc(list, func(o standing) bool {
			return o.class == s.class && o.group[roleIndex(role)] == s.group[roleIndex(role)]
		})
		if beaten {
			return list
		}
		return append(list, s)
	}
	if s.mode == jdkPKIX {
		t.every = append(t.every, s)
	} else {
		t.all = put(t.all)
		for _, n := range s.names.exact {
			t.exact[n] = put(t.exact[n])
		}
		for _, n := range s.names.parents {
			t.wildcard[n] = put(t.wildcard[n])
		}
	}
	t.aliases[fold(s.Alias)] = append(t.aliases[fold(s.Alias)], s)
	if role == keymanager.RoleServer && defaultAlias != "" && strings.EqualFold(s.Alias, defaultAlias) {
		t.defaults = append(t.defaults, s)
	}
}

// best returns the offer that p gets; its candidate is nil if there is none.
func (t *table) best(p *peer) offer {
	if p.mode == jdkPKIX {
		return t.bestJDK(p)
	}
	if p.Alias != "" {
		return p.pick(offer{}, t.aliases[fold(p.Alias)])
	}
	var best offer
	for _, list := range [...][]standing{t.exact[p.name.exact], t.wildcard[p.name.parent], t.all} {
		// A good one of this list beats all of the next: none of those that
		// are good carries the name as well.
		if best = p.pick(best, list); best.candidate != nil && best.class == OK {
			break
		}
	}
	if best.candidate != nil && best.match == NoMatch {
		if o := p.pick(offer{}, t.defaults); o.candidate != nil {
			return o
		}
	}
	return best
}

// pick returns the best of list and best.
func (p *peer) pick(best offer, list []standing) offer {
	for _, s := range list {
		if p.fits(s.candidate) != "" {
			continue
		}
		if o := p.offer(s); best.candidate == nil || p.compare(o, best) < 0 {
			best = o
		}
	}
	return best
}

// span returns the widest span around now without an instant at which a
// verdict may change, as far as Unix time in nanoseconds goes.
func (c *Chooser) span(now time.Time) (from, until time.Time) {
	from, until = time.Unix(0, 0), time.Unix(0, math.MaxInt64)
	i, found := slices.BinarySearchFunc(c.instants, now, time.Time.Compare)
	if found {
		i++
	}
	if i > 0 && c.instants[i-1].After(from) {
		from = c.instants[i-1]
	}
	if i < len(c.instants) && c.instants[i].Before(until) {
		until = c.instants[i]
	}
	return from, until
}

// deniedSchemes returns the schemes that constraints let no handshake be
// signed by.
func (c *Chooser) deniedSchemes(role keymanager.Role, now time.Time) schemeSet {
	return setOfAll(slices.DeleteFunc(handshakeSchemes(), func(s tls.SignatureScheme) bool {
		return c.constraints.Scheme(s, role, now) == nil
	}))
}

// unheardSchemes returns the schemes that the JDK takes for not offered.
func (c *Chooser) unheardSchemes() schemeSet {
	return setOfAll(slices.DeleteFunc(append(handshakeSchemes(), tls.PKCS1WithSHA1, tls.ECDSAWithSHA1), func(s tls.SignatureScheme) bool {
		return c.constraints.offered(s) == nil
	}))
}

// fold maps strings that strings.EqualFold takes for equal to one.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		// SimpleFold walks the runes of one fold upwards and then starts over.
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, s)
}
