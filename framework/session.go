// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
)

// sessionPrefix begins the entry of SessionState.Extra that says what the
// session began with: a name and the version of what follows.
const sessionPrefix = "tlsd served 1\x00"

// carryServed makes cfg, the configuration of the one connection c, write into
// session tickets what the session began with, and read it from those that the
// client offers. Tickets are sealed with the keys of tickets, which crypto/tls
// rotates, as if cfg did nothing special.
func carryServed(cfg *tls.Config, c *conn, tickets *tls.Config) {
	cfg.WrapSession = func(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
		began := c.served.Load()
		if cs.DidResume {
			began = c.session.Load()
		}
		if began != nil {
			ss.Extra = append(ss.Extra, encodeServed(began))
		}
		return tickets.EncryptTicket(cs, ss)
	}
	cfg.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		ss, err := tickets.DecryptTicket(ticket, cs)
		if ss != nil {
			c.session.Store(findServed(ss.Extra)) // the last one that is looked at is the one that is taken
		}
		return ss, err
	}
}

// encodeServed returns prefix, generation, builder, tier and a zero, alias.
func encodeServed(s *Served) []byte {
	b := []byte(sessionPrefix)
	b = binary.AppendUvarint(b, s.Generation)
	b = binary.AppendUvarint(b, uint64(s.Builder))
	b = append(b, s.Tier...)
	b = append(b, 0)
	return append(b, s.Alias...)
}

// findServed returns what encodeServed wrote, or nil if it isn't there.
func findServed(extra [][]byte) *Served {
	for _, e := range extra {
		b, ok := bytes.CutPrefix(e, []byte(sessionPrefix))
		if !ok {
			continue
		}
		generation, n := binary.Uvarint(b)
		if n <= 0 {
			continue
		}
		builder, m := binary.Uvarint(b[n:])
		if m <= 0 {
			continue
		}
		tier, alias, ok := bytes.Cut(b[n+m:], []byte{0})
		if ok {
			return &Served{string(tier), int(builder), string(alias), generation}
		}
	}
	return nil
}
