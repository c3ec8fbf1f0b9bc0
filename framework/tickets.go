// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"sync/atomic"
)

// ticketKeys are what the session tickets of one listener are sealed with. They
// are those of a tls.Config that does nothing else: crypto/tls makes a new key
// every 24 hours and takes tickets of the last seven days. Reloads leave them
// alone; what a ticket is good for beyond its listener is written into it (see
// carrySession).
type ticketKeys struct{ now atomic.Pointer[tls.Config] }

func (k *ticketKeys) current() *tls.Config { return k.now.Load() }

// roll makes all tickets worthless that were issued so far.
func (k *ticketKeys) roll() { k.now.Store(new(tls.Config)) }

// RollTickets makes all session tickets worthless that were issued so far: the
// next handshake of each client is a full one. Connections go on.
func (s *Server) RollTickets() {
	for _, l := range s.now.Load().listeners {
		l.tickets.roll()
	}
	s.log.Info("session tickets issued so far are worthless from now on")
}
