// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"net"
	"net/netip"
	"sync"
)

// Names of limits, as the configuration has them.
const (
	limitConnections = "connections"
	limitPerIP       = "connections_per_ip"
	limitHandshakes  = "handshakes"
)

// conns are the open connections of a Server.
type conns struct {
	wg sync.WaitGroup // counts them

	mu      sync.Mutex // guards what follows
	all     map[*conn]struct{}
	shaking int // those whose handshake is under way
	perIP   map[netip.Addr]int
}

// add takes c, whose handshake begins, or returns the name of the limit that
// keeps it out.
func (s *conns) add(c *conn) (limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit = s.full(c.ip, &c.limits); limit != "" {
		return limit
	}
	if s.all == nil {
		s.all, s.perIP = map[*conn]struct{}{}, map[netip.Addr]int{}
	}
	s.wg.Add(1)
	s.all[c] = struct{}{}
	s.shaking++
	if c.ip.IsValid() {
		s.perIP[c.ip]++
	}
	return ""
}

// full returns the name of the limit that one more connection from ip is over.
func (s *conns) full(ip netip.Addr, limits *Limits) string {
	reached := func(n, limit int) bool { return limit > 0 && n >= limit }
	switch {
	case reached(len(s.all), limits.Connections):
		return limitConnections
	case reached(s.perIP[ip], limits.ConnectionsPerIP):
		return limitPerIP
	case reached(s.shaking, limits.Handshakes):
		return limitHandshakes
	}
	return ""
}

// shaken is called once for each connection, when its handshake has ended.
func (s *conns) shaken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shaking--
}

func (s *conns) remove(c *conn) {
	s.mu.Lock()
	delete(s.all, c)
	if n, ok := s.perIP[c.ip]; ok && n > 1 {
		s.perIP[c.ip] = n - 1
	} else {
		delete(s.perIP, c.ip)
	}
	s.mu.Unlock()
	s.wg.Done()
}

// close closes those that which says.
func (s *conns) close(which func(*conn) bool) {
	s.mu.Lock()
	var found []*conn
	for c := range s.all {
		if which(c) {
			found = append(found, c)
		}
	}
	s.mu.Unlock()
	for _, c := range found {
		c.settle(ConnectionCut)
		_ = c.Close() // the peer may have been faster
	}
}

// some says whether one of them is one that which says.
func (s *conns) some(which func(*conn) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		if which(c) {
			return true
		}
	}
	return false
}

func (s *conns) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// bitsPerIP is how much of an IPv6 address tells clients apart: whoever has one
// has the rest of its /64 for the asking.
const bitsPerIP = 64

// clientIP returns what connections of one client are counted by: an IPv4
// address, or the first address of an IPv6 /64. It is not valid for a peer
// without an IP address.
func clientIP(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if !ip.Is6() {
		return ip
	}
	p, err := ip.Prefix(bitsPerIP)
	if err != nil { // never with these bits
		return netip.Addr{}
	}
	return p.Addr()
}
