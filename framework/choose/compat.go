// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// This file is what the JDK (17 to 25) does where it differs from us, for
// Options.JDKCompat: the order of its TLS layer's questions, of its key
// manager's answers, and its way to compare names. What it makes of chains is
// told by a flag where chains are looked at. It is measured, not copied: the
// tests ask the JDKs themselves.

// keyTypes are the types of keys (families of schemes) that the JDK's TLS layer
// asks its key manager for, in its order; 0 is none. It has three types that
// keys here can have: RSA, EC, EdDSA.
type keyTypes [3]schemeSet

// asJDK sees an entry as the JDK does: it ties a curve to a scheme in TLS 1.2
// too, takes every signature by PSS for the same, whatever the hash, and no
// certificate whose key usage names nothing but encipherOnly or decipherOnly.
func (c *candidate) asJDK() {
	if c.key.group != 0 {
		c.key.tls12 = c.key.tls13
	}
	for i := range c.chain.signatures {
		if s := &c.chain.signatures[i]; s.schemes&anyPSS != 0 {
			s.schemes = anyPSS
		}
	}
	const others = x509.KeyUsageEncipherOnly | x509.KeyUsageDecipherOnly
	for _, cert := range c.chain.parsed {
		if hasKeyUsage(cert) && cert.KeyUsage&^others == 0 {
			c.barred = fmt.Errorf("key usage of certificate %q allows nothing that the JDK knows a use for", cert.Subject)
		}
	}
	for _, name := range dnsNames(c.leaf) {
		c.patterns = append(c.patterns, strings.ToLower(name))
	}
}

// keyTypesOf returns the types that are asked for. A TLS 1.2 server goes by its
// own list of suites, in which the JDK has those with ECDSA first, and not by
// the schemes. Otherwise types go in the order of the peer's schemes, those in
// which it verifies no handshake left out.
func keyTypesOf(p *peer) (types keyTypes) {
	if p.legacy {
		if p.Auth&keymanager.AuthECDSA != 0 {
			types[0], types[1] = ecdsaFamily, eddsaFamily
		}
		if p.Auth&keymanager.AuthRSA != 0 {
			types[2] = rsaFamily
		}
		return types
	}
	n := 0
	for _, s := range p.Schemes {
		family := familyOf(setOf(s) & p.offered)
		if family&p.signable&signing(p.Version) != 0 && !slices.Contains(types[:], family) {
			types[n] = family
			n++
		}
	}
	return types
}

func familyOf(s schemeSet) schemeSet {
	for _, family := range [...]schemeSet{rsaFamily, ecdsaFamily, eddsaFamily} {
		if s&family != 0 {
			return family
		}
	}
	return 0
}

// signing returns the schemes that handshakes of a version are signed by.
func signing(version uint16) schemeSet {
	s := pssSHA256 | pssSHA384 | pssSHA512 | ecdsaSHA256 | ecdsaSHA384 | ecdsaSHA512 | ed25519Pure
	if version < tls.VersionTLS13 {
		s |= rsaSHA256 | rsaSHA384 | rsaSHA512
	}
	return s
}

// cannotSign turns the verdicts of what the JDK would have ranked to what comes
// of it: it takes the first, can't sign, and gives up.
func (p *peer) cannotSign(in []judged) {
	for i := range in {
		v := &in[i].verdict
		v.Out, v.Rule, v.Reason = true, RuleOrder, fmt.Sprintf("the JDK takes %q and asks for no other", in[0].Alias)
	}
	in[0].verdict.Rule = RuleScheme
	in[0].verdict.Reason = fmt.Sprintf("taken, as by the JDK, though the peer offers no signature scheme for %s", in[0].key.name)
}

// index returns the place of c's type, or -1.
func (k keyTypes) index(c *candidate) int { return slices.Index(k[:], c.key.family) }

// fitsJDK is fits by the rules of the JDK's key manager, which knows key types
// and not single schemes.
func (p *peer) fitsJDK(c *candidate) Rule {
	switch {
	case c.unusable != nil:
		return RuleUnusable
	case p.Alias != "" && !strings.EqualFold(p.Alias, c.Alias):
		return RuleAlias
	case p.refused&c.key.family != 0:
		return RuleGroup
	case p.types.index(c) < 0 && p.legacy:
		return RuleSuites
	case p.types.index(c) < 0:
		return RuleScheme
	case p.uncovered(c) != "":
		return RuleChain
	case !p.takesIssuers(c):
		return RuleIssuers
	}
	return ""
}

// compareJDK orders what the JDK asks for. A server asks for one type after the
// other; the key manager answers with the best class, of those with the first.
// A client asks once: then the first good one of the first keystore that has
// one wins, one of the first type before all others of its keystore.
func (p *peer) compareJDK(a, b offer) int {
	class := cmp.Compare(a.class.rank(), b.class.rank())
	byType := cmp.Compare(a.scheme, b.scheme)
	byPosition := cmp.Compare(a.position, b.position)
	switch {
	case p.Role == keymanager.RoleServer:
		return cmp.Or(byType, class, byPosition)
	case a.class == OK && b.class == OK:
		return cmp.Or(cmp.Compare(a.Builder, b.Builder), cmp.Compare(min(a.scheme, 1), min(b.scheme, 1)), byPosition)
	}
	return cmp.Or(class, byType, byPosition)
}

// bestJDK is best by the JDK's rules. It looks at every entry that constraints
// let through.
func (t *table) bestJDK(p *peer) offer {
	list := t.demanded(p)
	p.refuse(list)
	best := p.pick(offer{}, list)
	if p.Alias == "" && best.candidate != nil && best.match == NoMatch {
		if o := p.pick(offer{}, t.defaults); o.candidate != nil {
			best = o
		}
	}
	if best.candidate != nil && p.usable(best.candidate) == 0 {
		return offer{} // the JDK ends the handshake then, and asks for no other
	}
	return best
}

// demanded returns what constraints let through of what is asked for.
func (t *table) demanded(p *peer) []standing {
	if p.Alias != "" {
		return t.aliases[fold(p.Alias)]
	}
	return t.every
}

// refuse drops the types whose answer a TLS 1.2 client has no curve for: the
// JDK's TLS layer asks for the next type then, and not for another key of the
// same.
func (p *peer) refuse(list []standing) {
	for p.legacy {
		o := p.pick(offer{}, list)
		if o.candidate == nil || p.takesGroup(o.key.group) {
			return
		}
		p.refused |= o.key.family
	}
}

// matchesJDK reports whether one of a certificate's names is the server name as
// the JDK compares them for HTTPS: an asterisk stands for any part of any label,
// and a name that is no host name by the letter (an underscore, a dot at the
// end) matches nothing.
func matchesJDK(patterns []string, name string) bool {
	return isHostName(name) && slices.ContainsFunc(patterns, func(pattern string) bool {
		host, wild := strings.ReplaceAll(pattern, "*", "z"), strings.LastIndexByte(pattern, '*')
		if !isHostName(host) || wild >= 0 && !strings.Contains(pattern[wild:], ".") {
			return false
		}
		labels, wanted := strings.Split(name, "."), strings.Split(pattern, ".")
		return slices.EqualFunc(labels, wanted, matchesLabel)
	})
}

func matchesLabel(label, pattern string) bool {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		at := strings.Index(label, part)
		switch {
		case at < 0, i == 0 && at > 0:
			return false
		case i == len(parts)-1:
			return strings.HasSuffix(label, part) && (i > 0 || label == part)
		}
		label = label[at+len(part):]
	}
	return true
}

// isHostName reports whether s is a host name by the letter (RFC 1123, 2.1).
func isHostName(s string) bool {
	if strings.ContainsAny(s, "_") || !isDNSName(s) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s, "."), func(label string) bool {
		return label == "" || label[0] == '-' || label[len(label)-1] == '-'
	})
}
