// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"bytes"
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/logging"
)

// Messages of what will hurt, or hurts somebody already.
const (
	msgExpires    = "certificate expires"
	msgIncomplete = "chain incomplete"
)

const (
	day                  = 24 * time.Hour
	defaultExpiryWarning = 21 * day
)

// remind warns again where a day has gone by. It is called for each hello, so
// that no timer is needed; answers may not be reused beyond the next time.
func (c *Chooser) remind(now time.Time) {
	next := c.reminder.Load()
	if now.UnixNano() >= next && c.reminder.CompareAndSwap(next, now.Add(day).UnixNano()) {
		c.warn(now)
	}
}

// warn tells of every entry that needs its operator. Last resorts are told of
// anew when they are next served.
func (c *Chooser) warn(now time.Time) {
	for _, cand := range c.candidates {
		for i := range cand.warned {
			cand.warned[i].Store(false)
		}
		if cand.unusable != nil {
			continue
		}
		c.warnOf(cand, logging.MsgNotUsable, c.excluded(cand, now))
		c.warnOf(cand, msgExpires, cand.expiring(now, now.Add(c.expiryWarning)))
		c.warnOf(cand, msgIncomplete, c.incomplete(cand))
	}
}

func (c *Chooser) warnOf(cand *candidate, msg, reason string) {
	if reason != "" {
		e := logging.KeyEvent{Builder: cand.Builder, Alias: cand.Alias, Generation: c.generation, Reason: reason}
		logging.LogKey(c.log, zapcore.WarnLevel, msg, e)
	}
}

// excluded says why constraints keep an entry from every hello, or why no
// hello's schemes can cover its chain; empty: neither is so.
func (c *Chooser) excluded(cand *candidate, now time.Time) string {
	for _, s := range cand.chain.signatures {
		if s.schemes == 0 {
			return fmt.Sprintf("never served: no TLS signature scheme covers %s, by which the chain is signed", s.name)
		}
	}
	var reason string
	for _, role := range roles() {
		err := c.denies(cand, role, now)
		if err == nil {
			return ""
		}
		reason = "never served: " + err.Error()
	}
	return reason
}

// expiring says which certificate of the chain has expired or will have by
// then, a self-signed one above the leaf excepted; empty: none.
func (c *candidate) expiring(now, then time.Time) string {
	for i, cert := range c.chain.parsed {
		if i > 0 && bytes.Equal(cert.RawSubject, cert.RawIssuer) || !then.After(cert.NotAfter) {
			continue
		}
		what, end := "", cert.NotAfter.UTC().Format(time.RFC3339)
		if i > 0 {
			what = fmt.Sprintf("certificate %q of its chain ", cert.Subject)
		}
		if now.After(cert.NotAfter) {
			return fmt.Sprintf("%sexpired at %s; renew it", what, end)
		}
		return fmt.Sprintf("%sexpires at %s, in %d days; renew it", what, end, int(cert.NotAfter.Sub(now)/day))
	}
	return ""
}

// incomplete says why peers will miss an intermediate certificate, as far as
// that shows: it never shows whether the last one's issuer is a root that they
// have. Empty: it doesn't show.
func (c *Chooser) incomplete(cand *candidate) string {
	chain := cand.chain.parsed
	if len(chain) < len(cand.Chain) {
		return "" // not all of it can be read
	}
	for i, cert := range chain[:len(chain)-1] {
		if !bytes.Equal(cert.RawIssuer, chain[i+1].RawSubject) {
			return fmt.Sprintf("certificate %q is followed by %q, and its issuer is %q; put the chain in order, the leaf first", cert.Subject, chain[i+1].Subject, cert.Issuer)
		}
	}
	top := chain[len(chain)-1]
	switch {
	case bytes.Equal(top.RawSubject, top.RawIssuer):
		return ""
	case c.intermediates[string(top.RawIssuer)]:
		return fmt.Sprintf("ends before the intermediate certificate %q, which stands in another entry's; add it", top.Issuer)
	case len(chain) == 1 && len(top.IssuingCertificateURL) > 0:
		return fmt.Sprintf("there is no intermediate certificate; add that of %q, to be had at %s", top.Issuer, top.IssuingCertificateURL[0])
	}
	return ""
}

// intermediatesOf returns the subjects of the certificates above leaves that
// are not self-signed.
func intermediatesOf(candidates []*candidate) map[string]bool {
	subjects := map[string]bool{}
	for _, cand := range candidates {
		for i, cert := range cand.chain.parsed {
			if i > 0 && !bytes.Equal(cert.RawSubject, cert.RawIssuer) {
				subjects[string(cert.RawSubject)] = true
			}
		}
	}
	return subjects
}
