// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"cmp"
	"strings"
)

// Class ranks the candidates that a peer can use at all. All but OK are last
// resorts: they are served where nothing better is there, as the JDK does, so
// that the peer's own error says what is wrong.
type Class uint8

// Classes, best first. Expired and NotYetValid rank the same.
const (
	OK Class = iota
	SNIMismatch
	Expired
	NotYetValid
	WrongUsage

	numClasses = iota
)

// String returns the class as the log spells it.
func (c Class) String() string {
	return [numClasses]string{"ok", "sni_mismatch", "expired", "not_yet_valid", "wrong_usage"}[c]
}

func (c Class) rank() Class {
	if c == NotYetValid {
		return Expired
	}
	return c
}

// standing is a candidate at one time in one role, as good as it can be: the
// server name is yet to be looked at.
type standing struct {
	*candidate
	class Class
}

// offer is a standing held against a hello that it fits.
type offer struct {
	standing
	match  Match
	scheme int // position in the peer's list; where types of keys are asked for, in that of the types
}

// offer ranks a standing that p.fits.
func (p *peer) offer(s standing) offer {
	o := offer{standing: s, match: s.names.match(p.name)}
	switch {
	case p.mode == jdkPKIX && p.name.asked && matchesJDK(s.patterns, strings.ToLower(p.ServerName)):
		o.match = ExactMatch
	case p.mode == jdkPKIX:
		o.match = NoMatch
	}
	if p.name.asked && o.match == NoMatch && s.class == OK && p.mode != unchecked {
		o.class = SNIMismatch
	}
	o.scheme = p.preferred(p.usable(s.candidate))
	if p.mode != ours {
		o.scheme = p.types.index(s.candidate)
	}
	return o
}

// compare orders offers, the best first.
func (p *peer) compare(o, other offer) int {
	if p.mode == jdkPKIX {
		return p.compareJDK(o, other)
	}
	return cmp.Or(
		cmp.Compare(o.class.rank(), other.class.rank()),
		cmp.Compare(o.match, other.match),
		cmp.Compare(o.scheme, other.scheme),
		cmp.Compare(o.position, other.position),
	)
}
