// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/x509"
	"net/netip"
	"slices"
	"strings"
)

// Match says how a certificate carries the server name that a peer asks for.
type Match uint8

// Matches, best first. Where no name is asked for, all are NoMatch.
const (
	ExactMatch Match = iota
	WildcardMatch
	NoMatch
)

func (m Match) String() string {
	switch m {
	case ExactMatch:
		return "exact"
	case WildcardMatch:
		return "wildcard"
	}
	return "none"
}

// hostNames are the names that a certificate carries: the dNSName and iPAddress
// SANs, and the common name where there is no dNSName SAN at all.
type hostNames struct {
	exact   []string
	parents []string // "example.com" for "*.example.com"
}

func namesOf(leaf *x509.Certificate) hostNames {
	var n hostNames
	for _, name := range dnsNames(leaf) {
		name = lowerName(name)
		parent, wild := strings.CutPrefix(name, "*.")
		switch {
		case !isDNSName(parent) || parseIP(parent) != "":
		case wild:
			n.parents = append(n.parents, parent)
		default:
			n.exact = append(n.exact, name)
		}
	}
	for _, ip := range leaf.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			n.exact = append(n.exact, a.Unmap().String())
		}
	}
	return n
}

// dnsNames returns the host names as the certificate spells them.
func dnsNames(leaf *x509.Certificate) []string {
	if len(leaf.DNSNames) == 0 {
		return []string{leaf.Subject.CommonName}
	}
	return leaf.DNSNames
}

func (n hostNames) match(s serverName) Match {
	switch {
	case s.exact != "" && slices.Contains(n.exact, s.exact):
		return ExactMatch
	case s.parent != "" && slices.Contains(n.parents, s.parent):
		return WildcardMatch
	}
	return NoMatch
}

// serverName is a name that a peer asks for, in the form that it is looked up
// by. One that no certificate can carry has neither part.
type serverName struct {
	asked  bool
	exact  string
	parent string // what is left without the left-most label, empty for addresses
}

func parseServerName(s string) serverName {
	if s == "" {
		return serverName{}
	}
	n := serverName{asked: true}
	s = lowerName(s)
	if ip := parseIP(strings.Trim(s, "[]")); ip != "" {
		n.exact = ip
	} else if isDNSName(s) {
		n.exact = s
		_, n.parent, _ = strings.Cut(s, ".")
	}
	return n
}

// lowerName drops case and one trailing dot (RFC 6125, 6.4.1). It allocates
// only where there is something to lower.
func lowerName(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }

// isDNSName reports whether s, in lower case, is a host name: labels of
// letters, digits, hyphens and, as people do use them, underscores.
func isDNSName(s string) bool {
	const maxName = 253 // RFC 1035, 2.3.4, without the root
	if s == "" || len(s) > maxName {
		return false
	}
	label := 0
	for _, c := range []byte(s) {
		switch {
		case c == '.' && label > 0:
			label = 0
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			label++
		default:
			return false
		}
	}
	return label > 0
}

// parseIP returns the one spelling of an address, empty for what is none. A
// name that can't be one is told without the error that netip allocates.
func parseIP(s string) string {
	if !strings.Contains(s, ":") && (s == "" || s[len(s)-1] > '9') {
		return ""
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return ""
	}
	return a.Unmap().String()
}
