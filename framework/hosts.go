// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tlsd/tlsd/framework/backend"
)

// sites returns l as it serves the names of no host, and then as it serves each
// of its hosts. None of them has Hosts.
func (l *Listener) sites() []Listener {
	own := *l
	own.Hosts = nil
	sites := []Listener{own}
	for i := range l.Hosts {
		sites = append(sites, l.Hosts[i].under(own))
	}
	return sites
}

// under returns l with what h states of its own. A backend and how it is
// reached belong together, and so do a trust store, its password and the revocation
// lists of its CAs. ALPN is
// about what the backend speaks, so that it isn't inherited from HTTP to bytes
// or the other way.
func (h *Host) under(l Listener) Listener {
	if h.Backend != "" || h.BackendTLS != (BackendTLS{}) {
		if speaksHTTP(cmp.Or(h.Backend, l.Backend)) != speaksHTTP(l.Backend) {
			l.ALPN = nil
		}
		l.Backend, l.BackendTLS = cmp.Or(h.Backend, l.Backend), h.BackendTLS
	}
	if h.ClientCA != (TrustStore{}) {
		l.ClientCA, l.ClientCRL = h.ClientCA, ""
	}
	l.ClientCRL = cmp.Or(h.ClientCRL, l.ClientCRL)
	l.ClientAuth = cmp.Or(h.ClientAuth, l.ClientAuth)
	l.Alias = cmp.Or(h.Alias, l.Alias)
	return l
}

// speaksHTTP says whether the backend of rawURL isn't one for bytes. A mistake
// in it is found elsewhere.
func speaksHTTP(rawURL string) bool {
	t, err := backend.Parse(rawURL)
	return err == nil && t.Kind() != backend.KindBytes
}

// checkHosts finds mistakes in what the hosts of l make of it.
func (l *Listener) checkHosts() error {
	if _, err := newHostTable(l.Hosts); err != nil {
		return err
	}
	for i, site := range l.sites()[1:] {
		h := &l.Hosts[i]
		err := site.checkClientAuth()
		if err == nil && h.ClientCA.Path != "" && !site.ClientAuth.asks() {
			err = fmt.Errorf("client_ca %q is given and nobody is asked for a certificate: set client_auth to optional or require", h.ClientCA.Path)
		}
		if err == nil && h.ClientCRL != "" && !site.ClientAuth.asks() {
			err = fmt.Errorf("client_crl %q is given and nobody is asked for a certificate: set client_auth to optional or require", h.ClientCRL)
		}
		if err != nil {
			return h.named(err)
		}
	}
	return nil
}

// named says which host an error is about.
func (h *Host) named(err error) error {
	return fmt.Errorf("host %q: %w", strings.Join(h.Names, ", "), err)
}

// hostTable finds hosts by name. The zero value has none.
type hostTable map[string]hostEntry

// hostEntry stands under a name in the form of ParseHostName, a wildcard
// without its "*".
type hostEntry struct {
	place   int    // of the host, from 1
	written string // the name as configured
}

// newHostTable refuses names that are none and names that are there twice.
func newHostTable(hosts []Host) (hostTable, error) {
	t := hostTable{}
	for i := range hosts {
		if len(hosts[i].Names) == 0 {
			return nil, fmt.Errorf("hosts[%d] has no names: set names, or give the listener itself what is meant for all others", i)
		}
		for _, written := range hosts[i].Names {
			name, err := ParseHostName(written)
			if err != nil {
				return nil, fmt.Errorf("hosts[%d]: name %w", i, err)
			}
			key := strings.TrimPrefix(name, "*")
			if first, again := t[key]; again {
				return nil, fmt.Errorf("hosts[%d]: name %q is there already, as %q in hosts[%d]: leave out one of them", i, written, first.written, first.place-1)
			}
			t[key] = hostEntry{place: i + 1, written: written}
		}
	}
	return t, nil
}

// find returns the place of the host that a peer's name belongs to, from 1: by
// the name itself, or else by a wildcard for its left-most label. 0: none.
func (t hostTable) find(peers string) int {
	name := wireName(peers)
	dot := strings.IndexByte(name, '.')
	if e, ok := t[name]; ok && dot != 0 {
		return e.place
	}
	if dot > 0 {
		return t[name[dot:]].place
	}
	return 0
}
