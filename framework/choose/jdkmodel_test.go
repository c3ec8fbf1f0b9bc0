// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/dn"
)

// model is a second way to choose, by a linear walk that can be switched from
// Java's rules to ours one deviation at a time. It shares with the Chooser what
// reads single certificates, and none of the choosing.
type model struct {
	deviations
	q         *question
	now       time.Time
	rulesJDK  *Constraints
	rulesOurs *Constraints
	types     []schemeSet // in the order in which Java asks
	sunx509   bool
}

// modelled is an entry with its ranks, of which smaller ones are better.
type modelled struct {
	entry         keymanager.Entry
	jdk, ours     *candidate
	class, kind   int // kind: place of its type in types
	match, scheme int
	builder       int
}

func newModel(t *testing.T, q *question, d deviations, sunx509 bool) *model {
	t.Helper()
	m := &model{deviations: d, q: q, now: time.Now(), sunx509: sunx509, rulesJDK: q.rules(t, true), rulesOurs: q.rules(t, false)}
	m.types = m.askedTypes()
	return m
}

// askedTypes is how Java's TLS layer gets from a hello to key types.
func (m *model) askedTypes() (types []schemeSet) {
	h := m.q.hello
	tls12 := h.Version == tls.VersionTLS12
	if tls12 && h.Role == keymanager.RoleServer {
		if h.Auth&keymanager.AuthECDSA != 0 {
			types = append(types, ecdsaFamily, eddsaFamily)
		}
		if h.Auth&keymanager.AuthRSA != 0 {
			types = append(types, rsaFamily)
		}
		return types
	}
	for _, s := range h.Schemes {
		for _, family := range []schemeSet{rsaFamily, ecdsaFamily, eddsaFamily} {
			signs := slices.ContainsFunc(h.Schemes, func(s2 tls.SignatureScheme) bool {
				pkcs1 := setOf(s2)&(rsaSHA256|rsaSHA384|rsaSHA512) != 0
				return m.offers(s2) && setOf(s2)&family != 0 && (tls12 || !pkcs1)
			})
			if m.offers(s) && setOf(s)&family != 0 && signs && !slices.Contains(types, family) {
				types = append(types, family)
			}
		}
	}
	return types
}

// offers reports whether a scheme counts as offered: where Java's constraints
// deny it, it doesn't, with them or with a single scheme in mind.
func (m *model) offers(s tls.SignatureScheme) bool {
	return m.has(devConditions) || m.rulesJDK.offered(s) == nil
}

// answer chooses.
func (m *model) answer() answer {
	list := m.fitting()
	var winner *modelled
	switch {
	case m.sunx509 && m.has(devSigning), !m.sunx509 && m.has(devRanking):
		winner = first(list, m.compare)
	case m.q.hello.Role == keymanager.RoleServer:
		winner = m.typeByType(list)
	case m.sunx509:
		winner = first(list, func(a, b modelled) int { return cmp.Compare(a.kind, b.kind) })
	default:
		winner = m.builderByBuilder(list)
	}
	if winner == nil {
		return answer{failed: true}
	}
	return answer{entry: fmt.Sprintf("%d.%s", winner.entry.Builder, winner.entry.Alias), failed: winner.scheme < 0}
}

func first(list []modelled, compare func(a, b modelled) int) *modelled {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, compare)
	return &list[0]
}

// compare ranks as we do, but for the deviations that are switched off.
func (m *model) compare(a, b modelled) int {
	if m.sunx509 {
		return cmp.Compare(a.kind, b.kind)
	}
	order := []int{cmp.Compare(a.class, b.class)}
	if m.has(devNames) {
		order = append(order, cmp.Compare(a.match, b.match))
	}
	if m.has(devSigning) {
		order = append(order, cmp.Compare(a.scheme, b.scheme))
	} else {
		order = append(order, cmp.Compare(a.kind, b.kind))
	}
	return cmp.Or(order...)
}

// typeByType is Java's TLS layer in a server: the key manager is asked for one
// type after the other, and in TLS 1.2 an answer whose curve the client lacks
// counts as none.
func (m *model) typeByType(list []modelled) *modelled {
	for kind := range m.types {
		of := slices.DeleteFunc(slices.Clone(list), func(e modelled) bool { return e.kind != kind })
		within := m.compare
		if m.sunx509 {
			within = func(modelled, modelled) int { return 0 }
		}
		if w := first(of, within); w != nil && m.takesCurve(w.ours) {
			return w
		}
	}
	return nil
}

func (m *model) takesCurve(c *candidate) bool {
	h := m.q.hello
	if m.sunx509 && m.rulesJDK.curve(c.key.group) != nil && (m.has(devSigning) || h.Version == tls.VersionTLS12) {
		return false
	}
	return h.Version > tls.VersionTLS12 || h.Role == keymanager.RoleClient || c.key.group == 0 || slices.Contains(h.Groups, c.key.group)
}

// builderByBuilder is Java's key manager in a client: asked once for all types,
// it takes the first good entry of the first type in a keystore, else the first
// good one there, else goes on, and at last takes the best of the rest.
func (m *model) builderByBuilder(list []modelled) *modelled {
	for b := range m.q.builders {
		var good *modelled
		for _, e := range list {
			if e.builder != b || e.class != 0 {
				continue
			}
			if e.kind == 0 {
				return &e
			}
			if good == nil {
				good = &e
			}
		}
		if good != nil {
			return good
		}
	}
	return first(list, func(a, b modelled) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.kind, b.kind)) })
}

// fitting returns the entries that the peer can have, in the order walked.
func (m *model) fitting() (out []modelled) {
	entries := m.q.entries()
	if m.sunx509 && !m.has(devStoreOrder) {
		entries = inJavasOrder(entries)
	}
	for _, e := range entries {
		seen := m.q.candidate(e)
		c := modelled{entry: e, jdk: seen.jdk, ours: seen.ours, builder: e.Builder}
		c.kind = slices.Index(m.types, c.ours.key.family)
		c.scheme = m.scheme(c)
		able := c.kind >= 0
		if m.has(devSigning) {
			able = c.scheme >= 0 && m.takesCurve(c.ours) && m.takesSuite(c.ours)
		}
		if able && m.takesIssuers(c.ours) && (m.sunx509 || m.takesChain(c)) {
			c.class, c.match = m.classOf(c)
			out = append(out, c)
		}
	}
	return out
}

// scheme returns the place of the first scheme that the key signs by, or -1.
// Java ties a curve to a scheme in TLS 1.2 too.
func (m *model) scheme(c modelled) int {
	key := c.jdk.key
	if m.has(devSigning) {
		key = c.ours.key
	}
	return slices.IndexFunc(m.q.hello.Schemes, func(s tls.SignatureScheme) bool { return m.offers(s) && setOf(s)&key.usable(m.q.hello.Version) != 0 })
}

func (m *model) takesSuite(c *candidate) bool {
	h := m.q.hello
	return h.Role == keymanager.RoleClient || h.Auth&c.key.auth != 0
}

func (m *model) takesIssuers(c *candidate) bool {
	return len(m.q.hello.Issuers) == 0 || slices.ContainsFunc(m.q.hello.Issuers, func(der []byte) bool {
		return slices.Contains(c.chain.issuers, dn.Canonical(der))
	})
}

func (m *model) takesChain(c modelled) bool {
	offered := setOfAll(slices.DeleteFunc(slices.Clone(m.q.hello.Schemes), func(s tls.SignatureScheme) bool { return !m.offers(s) }))
	certs := c.ours.chain.parsed
	selfSigned := func(i int) bool { return i == len(certs)-1 && bytes.Equal(certs[i].RawIssuer, certs[i].RawSubject) }
	for i := range certs {
		if m.has(devSelfSigned) && selfSigned(i) {
			continue
		}
		covered := m.q.signature(certs[i])
		if !m.has(devSchemes) && covered&anyPSS != 0 {
			covered = anyPSS
		}
		if covered&offered == 0 {
			return false
		}
	}
	return (m.has(devUsage) || c.jdk.barred == nil) && m.permits(certs)
}

func (m *model) permits(certs []*x509.Certificate) bool {
	role := m.q.hello.Role
	judged := certs
	if top := certs[len(certs)-1]; m.has(devSelfSigned) && len(certs) > 1 && bytes.Equal(top.RawIssuer, top.RawSubject) {
		judged = certs[:len(certs)-1]
	}
	switch {
	case m.has(devConditions) && m.has(devSelfSigned):
		return m.rulesOurs.Chain(certs, role, m.now) == nil
	case m.has(devConditions):
		return m.rulesOurs.Chain(certs, role, m.now) == nil && m.rulesJDK.Chain(certs, role, m.now) == nil
	}
	return m.rulesJDK.Chain(judged, role, m.now) == nil
}

func (m *model) classOf(c modelled) (class, match int) {
	h := m.q.hello
	if m.sunx509 {
		return 0, 0
	}
	matched := matchesJDK(c.jdk.patterns, h.ServerName)
	if m.has(devNames) {
		match = int(c.ours.names.match(parseServerName(h.ServerName)))
		matched = match < int(NoMatch)
	}
	usage := c.jdk.usage
	if m.has(devUsage) {
		usage = c.ours.usage
	}
	leaf := c.ours.leaf
	switch {
	case usage[roleIndex(h.Role)] != nil:
		return 3, match
	case m.now.Before(leaf.NotBefore), m.now.After(leaf.NotAfter):
		return 2, match
	case h.Role == keymanager.RoleServer && h.ServerName != "" && !matched:
		return 1, match
	}
	return 0, match
}
