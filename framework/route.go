// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// route is all of a listener that a reload may change, as one immutable value.
type route struct {
	*site // the listener's own
	sites []*site
	names hostTable // places of sites
}

// newRoutes makes a route for each listener of content, or none.
func newRoutes(ctx context.Context, content *content, log *zap.Logger, listeners []Listener) ([]*route, error) {
	b := &builder{keys: content.keys, log: log, content: content}
	routes := make([]*route, 0, len(listeners))
	for i := range listeners {
		r, err := b.route(ctx, &listeners[i])
		if err != nil {
			return nil, fmt.Errorf("listener %q: %w", listeners[i].Listen, err)
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// Try makes all that a Server with the listeners would, and lets it go again: it
// finds what is wrong with them, reads their trust stores, binds no address and
// asks no backend.
func (k *Keys) Try(ctx context.Context, listeners []Listener) error {
	cfg := Config{Listeners: listeners}.withListeners()
	if err := cfg.checkListeners(); err != nil {
		return err
	}
	routes, err := newRoutes(ctx, newContent(k), zap.NewNop(), cfg.Listeners)
	for _, r := range routes {
		_ = r.close() // nothing was opened
	}
	return err
}

func (b *builder) route(ctx context.Context, l *Listener) (*route, error) {
	names, err := newHostTable(l.Hosts)
	if err != nil {
		return nil, err
	}
	r := &route{names: names}
	for i, cfg := range l.sites() {
		s, err := b.site(ctx, cfg, r.sites)
		if err != nil && i > 0 {
			return nil, l.Hosts[i-1].named(err)
		}
		if err != nil {
			return nil, err
		}
		r.sites = append(r.sites, s)
	}
	r.site = r.sites[0]
	return r, nil
}

// close closes what the backends keep open.
func (r *route) close() error {
	var errs []error
	for _, s := range r.sites {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// web says whether some site has an HTTP backend.
func (r *route) web() bool {
	return slices.ContainsFunc(r.sites, func(s *site) bool { return s.handler != nil })
}

// misdirects says whether a request for host is at the wrong site here: it is
// another host's, or no host's and the listener itself asks for other client
// certificates, or obeys other revocation lists.
func (r *route) misdirects(host string, here *site) bool {
	owner := r.sites[r.names.find(withoutPort(host))]
	if owner.place != 0 {
		return owner != here
	}
	return owner.cfg.ClientAuth.asks() && (owner.rules != here.rules || owner.revocation != here.revocation)
}

// siteOf returns the site that connections with a server name belong to.
func (r *route) siteOf(serverName string) *site { return r.sites[r.names.find(serverName)] }

// terminate returns the configuration of the one connection c: that of the
// listener's own site, or of the host that the client names.
func (r *route) terminate(c *conn, tickets *tls.Config) *tls.Config {
	c.site = r.site
	cfg := c.site.tls.Clone()
	carrySession(cfg, c, tickets)
	if len(r.names) == 0 {
		return cfg
	}
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c.site = r.siteOf(hello.ServerName)
		if c.site == r.site {
			return nil, nil
		}
		cfg := c.site.tls.Clone()
		carrySession(cfg, c, tickets)
		return cfg, nil
	}
	return cfg
}
