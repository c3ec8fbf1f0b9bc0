// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/dn"
)

// peer is a hello in the form that candidates are held against.
type peer struct {
	*keymanager.Hello
	name     serverName // server role only
	offered  schemeSet  // that the peer can verify
	signable schemeSet  // and that constraints let us sign by
	chains   schemeSet  // that it can verify in a chain, as far as is known
	issuers  []string   // client role only
	legacy   bool       // TLS 1.2 in the server role: cipher suites and groups count
	mode     mode
	types    keyTypes  // that are asked for; not for ours
	refused  schemeSet // families that the JDK's TLS layer gave up
}

func newPeer(h *keymanager.Hello, t *table, m mode) peer {
	p := peer{Hello: h, offered: setOfAll(h.Schemes) &^ t.unheard, mode: m}
	p.signable = p.offered &^ t.denied
	p.chains = p.offered
	if h.ChainsElsewhere { // where TLS 1.3 has the schemes of PKCS #1, and nobody leaves out what is current
		p.chains |= setOfAll(handshakeSchemes())
	}
	p.legacy = h.Role == keymanager.RoleServer && h.Version < tls.VersionTLS13
	if m != ours {
		p.types = keyTypesOf(&p)
	}
	if h.Role == keymanager.RoleClient {
		for _, der := range h.Issuers {
			p.issuers = append(p.issuers, dn.Canonical(der))
		}
		return p
	}
	p.name = parseServerName(h.ServerName)
	return p
}

// fits returns the rule by which p can't have c, whatever else there is; empty
// if it can. Constraints on chains are left to the caller.
func (p *peer) fits(c *candidate) Rule {
	if p.mode == jdkPKIX {
		return p.fitsJDK(c)
	}
	switch {
	case c.unusable != nil:
		return RuleUnusable
	case p.Alias != "" && !strings.EqualFold(p.Alias, c.Alias):
		return RuleAlias
	case p.legacy && p.Auth&c.key.auth == 0:
		return RuleSuites
	case p.usable(c) == 0:
		return RuleScheme
	case p.legacy && !p.takesGroup(c.key.group):
		return RuleGroup
	case p.uncovered(c) != "":
		return RuleChain
	case !p.takesIssuers(c):
		return RuleIssuers
	}
	return ""
}

// usable returns the schemes that a handshake with p can be signed by.
func (p *peer) usable(c *candidate) schemeSet { return c.key.usable(p.Version) & p.signable }

// takesGroup reports whether p takes an EC key on the curve; 0 is no EC key. A
// peer that names no group takes all (RFC 8422, 4).
func (p *peer) takesGroup(curve tls.CurveID) bool {
	return curve == 0 || len(p.Groups) == 0 || slices.Contains(p.Groups, curve)
}

// uncovered names the first signature algorithm in c's chain that p can't
// verify.
func (p *peer) uncovered(c *candidate) string {
	for _, s := range c.chain.signatures {
		if s.schemes&p.chains == 0 {
			return s.name
		}
	}
	return ""
}

// takesIssuers reports whether a certificate of c's chain is issued by one of
// the names that p asks for, if it asks.
func (p *peer) takesIssuers(c *candidate) bool {
	return len(p.issuers) == 0 ||
		slices.ContainsFunc(c.chain.issuers, func(n string) bool { return slices.Contains(p.issuers, n) })
}

// preferred returns the index in p's list of the first scheme that is in set,
// or -1.
func (p *peer) preferred(set schemeSet) int {
	return slices.IndexFunc(p.Schemes, func(s tls.SignatureScheme) bool { return setOf(s)&set != 0 })
}
