// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rule is one entry of a disabledAlgorithms property: it denies what its name
// matches where all of its conditions hold.
type rule struct {
	text       string // as written, for messages
	name       string // normalised
	wildcard   bool   // name is a TLS_…*… pattern for cipher suites
	conditions []condition
}

// condition is one of keySize, jdkCA, denyAfter and usage. Its zero fields are
// those of the other kinds.
type condition struct {
	kind  conditionKind
	op    string    // keySize
	size  int       // keySize, bits
	after time.Time // denyAfter, midnight UTC
	uses  []string  // usage, lower case
}

type conditionKind uint8

const (
	keySize conditionKind = iota
	jdkCA
	denyAfter
	usage
)

var keySizeOps = []string{"<=", "<", "==", "!=", ">=", ">"}

// Uses that a usage condition may name, lower case. The last two belong to the
// tls property and cannot be mixed with the others.
const (
	useTLSServer     = "tlsserver"
	useTLSClient     = "tlsclient"
	useSignedJAR     = "signedjar"
	useHandshakeSig  = "handshakesignature"
	useCertSignature = "certificatesignature"
)

const includeCurves = "include jdk.disabled.namedcurves"

// parseRules parses the value of a disabledAlgorithms property as the JDK does
// (java.security, "Algorithm restrictions"). property names it in errors, which
// give the position of the fault in characters from 1.
func parseRules(property, value string) ([]rule, error) {
	text := strings.TrimSpace(value) // a YAML block scalar ends in a line break
	offset := strings.Index(value, text)
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
		offset++
	}
	var rules []rule
	for _, entry := range strings.Split(text, ",") {
		p := &ruleParser{property: property, value: value, entry: entry, pos: offset}
		offset += len(entry) + 1
		if strings.TrimSpace(entry) == "" || strings.EqualFold(strings.Join(strings.Fields(entry), " "), includeCurves) {
			continue // jdk.disabled.namedCurves is empty by default and cannot be set here
		}
		r, err := p.parse(property == propertyTLS)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// ruleParser parses one entry; pos is where the entry begins in value.
type ruleParser struct {
	property, value, entry string
	pos                    int
}

// word is a piece of the entry and its place in it.
type word struct {
	text string
	at   int
}

// words splits at white space of every kind: expressions stand over several
// lines in YAML.
func (p *ruleParser) words(from, to int) []word {
	var ws []word
	for text := range strings.FieldsSeq(p.entry[from:to]) {
		at := from + strings.Index(p.entry[from:to], text)
		ws = append(ws, word{text, at})
		from = at + len(text)
	}
	return ws
}

// oddInName reports whether r is in no name of an algorithm: a rule with such a
// name would be in force in appearance only.
func oddInName(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\'' }

func (p *ruleParser) fail(at int, format string, args ...any) error {
	return fmt.Errorf("parse %s: %s at position %d of %q", p.property, fmt.Sprintf(format, args...), p.pos+at+1, p.value)
}

func (p *ruleParser) parse(inTLS bool) (rule, error) {
	first := p.words(0, len(p.entry))[0]
	r := rule{text: strings.TrimSpace(p.entry), name: normalName(first.text)}
	if i := strings.IndexFunc(first.text, oddInName); i >= 0 {
		return r, p.fail(first.at+i, "the name %q of an algorithm has a character that none has: take it out,", first.text)
	}
	if strings.Contains(first.text, "*") {
		if !inTLS || !strings.HasPrefix(first.text, "TLS_") {
			return r, p.fail(first.at, "wildcard %q must begin with TLS_ and stand in %s", first.text, propertyTLS)
		}
		r.wildcard = true
	}
	start := first.at + len(first.text)
	if strings.TrimSpace(p.entry[start:]) == "" {
		return r, nil
	}
	for start <= len(p.entry) {
		end := len(p.entry)
		if i := strings.IndexByte(p.entry[start:], '&'); i >= 0 {
			end = start + i
		}
		c, err := p.condition(start, end, inTLS)
		if err != nil {
			return r, err
		}
		if c.kind != keySize && c.kind != usage && slices.ContainsFunc(r.conditions, func(o condition) bool { return o.kind == c.kind }) {
			return r, p.fail(start, "condition stands twice")
		}
		r.conditions = append(r.conditions, c)
		start = end + 1
	}
	return r, nil
}

func (p *ruleParser) condition(start, end int, inTLS bool) (condition, error) {
	ws := p.words(start, end)
	if len(ws) == 0 {
		return condition{}, p.fail(start, "a condition is missing")
	}
	switch kind := ws[0]; {
	case kind.text == "keySize":
		return p.keySize(ws)
	case strings.EqualFold(kind.text, "jdkCA") && len(ws) == 1:
		return condition{kind: jdkCA}, nil
	case kind.text == "denyAfter":
		return p.denyAfter(ws)
	case strings.EqualFold(kind.text, "usage"):
		return p.usage(ws, inTLS)
	default:
		return condition{}, p.fail(kind.at, "unknown condition %q (known: keySize, jdkCA, denyAfter, usage)", kind.text)
	}
}

func (p *ruleParser) keySize(ws []word) (condition, error) {
	if len(ws) != 3 {
		return condition{}, p.fail(ws[0].at, "keySize wants an operator and a number of bits, as in \"keySize < 2048\",")
	}
	if !slices.Contains(keySizeOps, ws[1].text) {
		return condition{}, p.fail(ws[1].at, "unknown operator %q (known: %s)", ws[1].text, strings.Join(keySizeOps, " "))
	}
	n, err := strconv.Atoi(ws[2].text)
	if err != nil || n < 0 {
		return condition{}, p.fail(ws[2].at, "%q is no number of bits", ws[2].text)
	}
	return condition{kind: keySize, op: ws[1].text, size: n}, nil
}

func (p *ruleParser) denyAfter(ws []word) (condition, error) {
	if len(ws) != 2 {
		return condition{}, p.fail(ws[0].at, "denyAfter wants a date, as in \"denyAfter 2030-01-01\",")
	}
	day, err := time.Parse("2006-1-2", ws[1].text)
	if err != nil {
		return condition{}, p.fail(ws[1].at, "%q is no date of the form YYYY-MM-DD", ws[1].text)
	}
	return condition{kind: denyAfter, after: day}, nil
}

func (p *ruleParser) usage(ws []word, inTLS bool) (condition, error) {
	c := condition{kind: usage}
	signature := 0
	for _, w := range ws[1:] {
		use := strings.ToLower(w.text)
		switch use {
		case useTLSServer, useTLSClient, useSignedJAR:
		case useHandshakeSig, useCertSignature:
			if !inTLS {
				return c, p.fail(w.at, "usage %s belongs to %s", w.text, propertyTLS)
			}
			signature++
		default:
			return c, p.fail(w.at, "unknown usage %q (known: TLSServer, TLSClient, SignedJAR; in %s also HandshakeSignature, CertificateSignature)", w.text, propertyTLS)
		}
		c.uses = append(c.uses, use)
	}
	if len(c.uses) == 0 {
		return c, p.fail(ws[0].at, "usage wants at least one use")
	}
	if signature > 0 && signature < len(c.uses) {
		return c, p.fail(ws[0].at, "usage cannot mix HandshakeSignature and CertificateSignature with others")
	}
	return c, nil
}
