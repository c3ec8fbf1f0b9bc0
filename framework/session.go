// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"slices"
	"strings"
)

// Prefixes of the entries of SessionState.Extra: a name and the version of what
// follows.
const (
	servedPrefix = "tlsd served 1\x00" // what the session began with
	boundPrefix  = "tlsd bound 2\x00"  // where alone it may be resumed
)

// carrySession makes cfg, the configuration of the one connection c, write into
// session tickets what the session began with and where it belongs, and read it
// from those that the client offers. A ticket that belongs elsewhere is as good
// as none: the handshake is a full one. Tickets are sealed with the keys of
// tickets, which crypto/tls rotates, as if cfg did nothing special.
func carrySession(cfg *tls.Config, c *conn, tickets *tls.Config) {
	cfg.WrapSession = func(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
		began := c.served.Load()
		if cs.DidResume {
			began = c.session.Load()
		}
		if began != nil {
			ss.Extra = append(ss.Extra, encodeServed(began))
		}
		ss.Extra = append(ss.Extra, boundTo(c.site, cs.ServerName))
		return tickets.EncryptTicket(cs, ss)
	}
	cfg.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		ss, err := tickets.DecryptTicket(ticket, cs)
		if ss == nil || !isBound(ss.Extra, boundTo(c.site, cs.ServerName)) {
			return nil, err
		}
		c.session.Store(findServed(ss.Extra)) // the last one that is looked at is the one that is taken
		return ss, err
	}
}

// boundTo returns prefix, client rules, what is revoked (zeros where no list says),
// whether unknown names are rejected, and server name: all but the last have a fixed
// length, so that no two join to the same. A session was opened by the rules of its
// site, and a resumption asks for no certificate and chooses none, so that it must not
// pass where others hold. That the name must be the same is RFC 6066, section 3; in TLS 1.3, which leaves it open, it keeps a
// client from taking a name to resume with that no certificate here carries.
func boundTo(s *site, serverName string) []byte {
	var revoked [sha256.Size]byte
	if s.revocation != nil {
		revoked = s.revocation.digest
	}
	var rejects [1]byte
	if s.cfg.UnknownSNI == UnknownSNIReject {
		rejects[0] = 1
	}
	return slices.Concat([]byte(boundPrefix), s.rules[:], revoked[:], rejects[:], []byte(strings.ToLower(serverName)))
}

func isBound(extra [][]byte, want []byte) bool {
	return slices.ContainsFunc(extra, func(e []byte) bool { return bytes.Equal(e, want) })
}

// encodeServed returns prefix, generation, builder, tier and a zero, alias.
func encodeServed(s *Served) []byte {
	b := []byte(servedPrefix)
	b = binary.AppendUvarint(b, s.Generation)
	b = binary.AppendUvarint(b, uint64(s.Builder))
	b = append(b, s.Tier...)
	b = append(b, 0)
	return append(b, s.Alias...)
}

// findServed returns what encodeServed wrote, or nil if it isn't there.
func findServed(extra [][]byte) *Served {
	for _, e := range extra {
		b, ok := bytes.CutPrefix(e, []byte(servedPrefix))
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
