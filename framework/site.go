// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/backend"
)

// site is a listener or one of its hosts at work: how connections are
// terminated and where they go. It is immutable.
type site struct {
	cfg   Listener // of a host: what it makes of its listener
	place int      // among the sites of the route; 0: the listener's own
	tls   *tls.Config
	rules clientRules
	roots []*x509.Certificate // that client certificates have to lead to; nil: none is asked for

	revocation *revocation // of client certificates; nil: no list is given
	way
}

// clientRules tell apart what sites ask of their clients: client_auth, and the
// certificates that are trusted.
type clientRules [sha256.Size]byte

// way is where connections go. Exactly one of handler and bytes is set.
type way struct {
	handler http.Handler
	bytes   *backend.Bytes
	close   func() error // of what the backend keeps open; not nil
}

// builder makes routes from one reading of trust stores and revocation lists.
type builder struct {
	keys    *Keys
	log     *zap.Logger
	content *content
}

// site makes the site of l. Sites of the same backend share a way: others are
// those that there are already.
func (b *builder) site(ctx context.Context, l Listener, others []*site) (*site, error) {
	target, err := backend.Parse(l.Backend)
	if err != nil {
		return nil, err
	}
	s := &site{cfg: l, place: len(others)}
	if s.tls, err = b.terminate(&l, target); err != nil {
		return nil, err
	}
	if err := b.askClients(ctx, s); err != nil {
		return nil, err
	}
	for _, o := range others {
		if o.cfg.Backend == l.Backend && o.cfg.BackendTLS == l.BackendTLS {
			s.way = o.way
			return s, nil
		}
	}
	s.way, err = b.way(ctx, &l, target)
	return s, err
}

// terminate returns how TLS is terminated, whoever the client is.
func (b *builder) terminate(l *Listener, target backend.Target) (*tls.Config, error) {
	cfg := b.keys.TLSConfig()
	cfg.MinVersion, cfg.MaxVersion = cmp.Or(l.MinVersion, tls.VersionTLS12), l.MaxVersion
	cfg.CipherSuites, cfg.CurvePreferences = l.CipherSuites, nil
	for _, id := range l.Groups {
		cfg.CurvePreferences = append(cfg.CurvePreferences, tls.CurveID(id))
	}
	cfg.NextProtos = l.ALPN
	if l.ALPN == nil && target.Kind() != backend.KindBytes {
		cfg.NextProtos = []string{"h2", "http/1.1"}
	}
	return cfg, constrain(cfg, b.keys.constraints)
}

// askClients has s ask for client certificates, where it is to.
func (b *builder) askClients(ctx context.Context, s *site) error {
	s.tls.ClientAuth = s.cfg.ClientAuth.tlsAuth()
	if !s.cfg.ClientAuth.asks() {
		return nil
	}
	ca, err := b.content.trust(ctx, s.cfg.ClientCA)
	if err != nil {
		return err
	}
	s.tls.ClientCAs, s.roots = ca.pool, ca.certs
	s.rules = sha256.Sum256(fmt.Appendf(nil, "%s %x", s.cfg.ClientAuth, ca.digest))
	if s.cfg.ClientCRL == "" {
		return nil
	}
	s.revocation, err = b.content.revocation(s.cfg.ClientCRL, ca, s.cfg.CRLExpired)
	if err == nil {
		s.tls.VerifyConnection = s.revocation.verify
	}
	return err
}

// admits reports whether the rules of s let a client in that made the handshake of
// state under others: it showed a certificate that leads to what is trusted now, or
// none where none is required. What s would have asked for and it had no chance to
// show doesn't count for it.
func (s *site) admits(state *tls.ConnectionState) bool {
	if s.roots == nil {
		return true
	}
	if len(state.VerifiedChains) == 0 {
		return s.cfg.ClientAuth != ClientAuthRequire
	}
	return slices.ContainsFunc(state.VerifiedChains, func(chain []*x509.Certificate) bool {
		return slices.ContainsFunc(s.roots, chain[len(chain)-1].Equal)
	})
}

// way returns where the connections of l go.
func (b *builder) way(ctx context.Context, l *Listener, target backend.Target) (way, error) {
	w := way{close: func() error { return nil }}
	if target.Kind() == backend.KindHello {
		w.handler = backend.NewHello()
		return w, nil
	}
	towards, err := b.towards(ctx, l, target)
	if err != nil {
		return way{}, err
	}
	if target.Kind() == backend.KindBytes {
		w.bytes, err = backend.NewBytes(backend.BytesConfig{
			Target: target, TLS: towards, ConnectTimeout: l.ConnectTimeout, Log: b.log,
		})
		return w, err
	}
	h, err := backend.NewHTTP(backend.HTTPConfig{
		Target: target, TLS: towards, ConnectTimeout: l.ConnectTimeout, FirstByte: l.FirstByte,
		ClientHeaders: backend.ClientHeaders(l.ClientHeaders), TrustedProxies: l.TrustedProxies, Log: b.log,
	})
	if err != nil {
		return way{}, err
	}
	w.handler, w.close = h, h.Close
	return w, nil
}

// towards returns how a backend is reached by TLS, nil where it isn't.
func (b *builder) towards(ctx context.Context, l *Listener, target backend.Target) (*tls.Config, error) {
	if !target.TLS() {
		return nil, nil
	}
	cfg := b.keys.constrained(&tls.Config{MinVersion: tls.VersionTLS12})
	if l.BackendTLS.ClientCertificate {
		cfg = b.keys.clientConfig(l.Backend)
	}
	cfg.ServerName = l.BackendTLS.Name
	if l.BackendTLS.CA.Path == "" {
		return cfg, nil
	}
	ca, err := b.content.trust(ctx, l.BackendTLS.CA)
	cfg.RootCAs = ca.pool
	return cfg, err
}
