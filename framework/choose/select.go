// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Select returns the credential for h, or an error that wraps
// keymanager.ErrNoCredential. Its cost does not grow with the number of
// entries, unless Options.JDKCompat is set, or debug is on for env.Log: then
// every entry and its verdict is logged.
//
// A last resort that is served (expired, not yet valid, wrong usage) is a
// warning, once a day for each entry and class.
func (c *Chooser) Select(h *keymanager.Hello) (*keymanager.Credential, error) {
	if h.Role != keymanager.RoleServer && h.Role != keymanager.RoleClient {
		return nil, fmt.Errorf("select: hello of role %q", h.Role)
	}
	now := c.now()
	c.remind(now)
	t := c.table(h.Role, now)
	p := newPeer(h, t, c.mode)
	best := t.best(&p)
	c.logVerdicts(h, now)
	if best.candidate == nil {
		return nil, fmt.Errorf("select for server name %q, alias %q: %w", h.ServerName, h.Alias, keymanager.ErrNoCredential)
	}
	c.warnLastResort(&p, best)
	return c.credential(h, best, t), nil
}

func (c *Chooser) credential(h *keymanager.Hello, o offer, t *table) *keymanager.Credential {
	return &keymanager.Credential{
		Builder:    o.Builder,
		Alias:      o.Alias,
		Generation: c.generation,
		Chain:      o.Chain,
		Leaf:       o.leaf,
		Key:        o.Key,
		Schemes:    o.schemes(t.denied),
		Reuse:      keymanager.Reuse{Vary: c.vary(h), From: t.from, Until: c.beforeReminder(t.until)},
	}
}

// beforeReminder returns until, or the time of the next warnings if that is
// earlier: answers that nobody asks for anew would keep them away.
func (c *Chooser) beforeReminder(until time.Time) time.Time {
	if next := time.Unix(0, c.reminder.Load()); next.Before(until) {
		return next
	}
	return until
}

// schemes returns what the key may sign by; nil: all that its type allows.
func (o offer) schemes(denied schemeSet) []tls.SignatureScheme {
	own := o.key.tls12 | o.key.tls13
	if own&denied == 0 {
		return o.Schemes
	}
	return slices.DeleteFunc(handshakeSchemes(), func(s tls.SignatureScheme) bool {
		return setOf(s)&own&^denied == 0
	})
}

// vary returns the fields of h that an answer to it depends on. It must not
// depend on a field that is not in it.
func (c *Chooser) vary(h *keymanager.Hello) keymanager.Fields {
	v := keymanager.FieldRole | keymanager.FieldAlias | keymanager.FieldVersion | keymanager.FieldSchemes | keymanager.FieldChainsElsewhere
	if h.Role == keymanager.RoleClient {
		return v | keymanager.FieldIssuers
	}
	if h.Version < tls.VersionTLS13 {
		v |= keymanager.FieldAuth | keymanager.FieldGroups
	}
	if c.mode != unchecked {
		v |= keymanager.FieldServerName
	}
	return v
}
