// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Rule names what decided against a candidate.
type Rule string

// Rules by which a peer can't have a candidate at all.
const (
	RuleUnusable    Rule = "unusable"        // the entry has no key that TLS can use here
	RuleAlias       Rule = "alias"           // listener or host demand another entry
	RuleSuites      Rule = "cipher_suites"   // TLS 1.2: no common suite authenticates with such a key
	RuleScheme      Rule = "scheme"          // the peer verifies no signature that such a key makes
	RuleGroup       Rule = "group"           // TLS 1.2: the key's curve is not among the peer's groups
	RuleChain       Rule = "chain_signature" // the peer verifies no signature like one in the chain
	RuleIssuers     Rule = "issuers"         // no certificate of the chain is issued by a name that the peer accepts
	RuleConstraints Rule = "constraints"     // the chain breaks the algorithm constraints
)

// Rules by which a candidate is a last resort, or comes after another one.
const (
	RuleUsage    Rule = "usage"         // key usage or extended key usage
	RuleValidity Rule = "validity"      // notBefore or notAfter of the leaf
	RuleName     Rule = "name"          // the server name
	RuleOrder    Rule = "scheme_order"  // the peer prefers another scheme
	RuleStore    Rule = "store_order"   // another one comes first, by builder and in the store
	RuleDefault  Rule = "default_alias" // the default alias is served instead
)

// Verdict is what a choice made of one entry.
type Verdict struct {
	Builder int
	Alias   string
	Out     bool                // the peer can't have it at all
	Class   Class               // of no meaning where Rule is RuleUnusable
	Match   Match               // how it carries the server name
	Scheme  tls.SignatureScheme // the peer's most preferred of those that it signs by; 0: none
	Rule    Rule                // what decided against it; empty for a winner of class OK
	Reason  string              // the same in words
}

// judged is a candidate with its verdict in the making.
type judged struct {
	offer
	verdict Verdict
}

// Verdicts judges every entry for h: the winner, if there is one, first, then
// those that it could have, best first, then those that it can't have, as
// stored. It looks at each entry, and is for explaining and not for serving.
func (c *Chooser) Verdicts(h *keymanager.Hello) []Verdict {
	return c.verdicts(h, c.now())
}

func (c *Chooser) verdicts(h *keymanager.Hello, now time.Time) []Verdict {
	t := c.table(h.Role, now)
	p := newPeer(h, t, c.mode)
	if c.mode == jdkPKIX {
		p.refuse(t.demanded(&p))
	}
	var in []judged
	var out []Verdict
	for _, cand := range c.candidates {
		if j := c.judge(&p, cand, now); j.verdict.Out {
			out = append(out, j.verdict)
		} else {
			in = append(in, j)
		}
	}
	slices.SortStableFunc(in, func(a, b judged) int { return p.compare(a.offer, b.offer) })
	byDefault := c.preferDefault(&p, in)
	if len(in) > 0 && p.usable(in[0].candidate) == 0 {
		p.cannotSign(in)
	}
	verdicts := make([]Verdict, 0, len(c.candidates))
	for i, j := range in {
		if i > 0 && j.verdict.Rule == "" {
			j.verdict.Rule, j.verdict.Reason = j.after(in[0], byDefault)
		}
		verdicts = append(verdicts, j.verdict)
	}
	return append(verdicts, out...)
}

// preferDefault moves the default alias to the front where the winner doesn't
// carry the name.
func (c *Chooser) preferDefault(p *peer, in []judged) bool {
	if c.defaultAlias == "" || p.Alias != "" || p.Role != keymanager.RoleServer || len(in) == 0 || in[0].match != NoMatch {
		return false
	}
	i := slices.IndexFunc(in, func(j judged) bool { return strings.EqualFold(j.Alias, c.defaultAlias) })
	if i <= 0 {
		return false
	}
	winner := in[i]
	copy(in[1:], in[:i])
	in[0] = winner
	return true
}

func (c *Chooser) judge(p *peer, cand *candidate, now time.Time) judged {
	j := judged{verdict: Verdict{Builder: cand.Builder, Alias: cand.Alias}}
	v := &j.verdict
	if v.Rule = p.fits(cand); v.Rule == "" {
		if err := c.denies(cand, p.Role, now); err != nil {
			v.Rule, v.Reason = RuleConstraints, err.Error()
		}
	} else {
		v.Reason = p.reason(v.Rule, cand)
	}
	v.Out = v.Rule != ""
	if v.Rule == RuleUnusable {
		return j
	}
	j.offer = p.offer(cand.standing(p.Role, now))
	v.Class, v.Match = j.class, j.match
	if i := p.preferred(p.usable(cand)); i >= 0 {
		v.Scheme = p.Schemes[i]
	}
	if !v.Out {
		v.Rule, v.Reason = p.shortfall(j.offer)
	}
	return j
}

// reason puts a rule by which p can't have c into words.
func (p *peer) reason(r Rule, c *candidate) string {
	switch r {
	case RuleUnusable:
		return c.unusable.Error()
	case RuleAlias:
		return fmt.Sprintf("alias %q is demanded", p.Alias)
	case RuleSuites:
		return fmt.Sprintf("no common cipher suite authenticates with %s", c.key.name)
	case RuleScheme:
		return fmt.Sprintf("the peer offers no signature scheme for %s", c.key.name)
	case RuleGroup:
		return fmt.Sprintf("the peer does not offer the curve of %s", c.key.name)
	case RuleChain:
		return fmt.Sprintf("the peer does not verify %s, by which the chain is signed", p.uncovered(c))
	case RuleIssuers:
		return "the peer accepts none of the chain's issuers"
	}
	return string(r)
}

// shortfall says why an offer is not of class OK.
func (p *peer) shortfall(o offer) (Rule, string) {
	switch o.class {
	case WrongUsage:
		return RuleUsage, o.usage[roleIndex(p.Role)].Error()
	case Expired:
		return RuleValidity, "expired at " + o.leaf.NotAfter.UTC().Format(time.RFC3339)
	case NotYetValid:
		return RuleValidity, "not valid before " + o.leaf.NotBefore.UTC().Format(time.RFC3339)
	case SNIMismatch:
		return RuleName, fmt.Sprintf("does not carry the name %q", p.ServerName)
	}
	return "", ""
}

// after says why j, of class OK, comes after the winner.
func (j judged) after(winner judged, byDefault bool) (Rule, string) {
	switch {
	case byDefault:
		return RuleDefault, fmt.Sprintf("the default alias %q serves hellos without a known name", winner.Alias)
	case j.match != winner.match:
		return RuleName, fmt.Sprintf("a match that is %s comes before one that is %s", winner.match, j.match)
	case j.scheme != winner.scheme && j.mode != ours:
		return RuleOrder, fmt.Sprintf("keys like that of %q are asked for first", winner.Alias)
	case j.scheme != winner.scheme:
		return RuleOrder, fmt.Sprintf("the peer prefers %v", winner.verdict.Scheme)
	}
	return RuleStore, fmt.Sprintf("%q comes first", winner.Alias)
}
