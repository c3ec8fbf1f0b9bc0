// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"github.com/tlsd/tlsd/framework/backend"
)

// route is all of a listener that a reload may change, as one immutable value:
// how connections are terminated and where they go. Exactly one of handler and
// bytes is set.
type route struct {
	tls     *tls.Config
	handler http.Handler
	bytes   *backend.Bytes
	close   func() error // of what the backend keeps open; not nil
}

// newRoute reads the listener's trust stores and makes its route.
func (s *Server) newRoute(ctx context.Context, l *Listener) (*route, error) {
	target, err := backend.Parse(l.Backend)
	if err != nil {
		return nil, err
	}
	r := &route{close: func() error { return nil }}
	if r.tls, err = s.terminate(ctx, l, target); err != nil {
		return nil, err
	}
	if target.Kind() == backend.KindHello {
		r.handler = backend.NewHello()
		return r, nil
	}
	towards, err := s.towards(ctx, l, target)
	if err != nil {
		return nil, err
	}
	if target.Kind() == backend.KindBytes {
		r.bytes, err = backend.NewBytes(backend.BytesConfig{
			Target: target, TLS: towards, ConnectTimeout: l.ConnectTimeout, Log: s.log,
		})
		return r, err
	}
	h, err := backend.NewHTTP(backend.HTTPConfig{
		Target: target, TLS: towards, ConnectTimeout: l.ConnectTimeout, FirstByte: l.FirstByte,
		ClientHeaders: backend.ClientHeaders(l.ClientHeaders), TrustedProxies: l.TrustedProxies, Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	r.handler, r.close = h, h.Close
	return r, nil
}

// terminate returns how the listener's TLS is terminated.
func (s *Server) terminate(ctx context.Context, l *Listener, target backend.Target) (*tls.Config, error) {
	cfg := s.keys.TLSConfig()
	cfg.MinVersion, cfg.MaxVersion = cmp.Or(l.MinVersion, tls.VersionTLS12), l.MaxVersion
	cfg.CipherSuites, cfg.CurvePreferences = l.CipherSuites, nil
	for _, id := range l.Groups {
		cfg.CurvePreferences = append(cfg.CurvePreferences, tls.CurveID(id))
	}
	cfg.NextProtos = l.ALPN
	if l.ALPN == nil && target.Kind() != backend.KindBytes {
		cfg.NextProtos = []string{"h2", "http/1.1"}
	}
	if err := constrain(cfg, s.keys.constraints); err != nil {
		return nil, err
	}
	cfg.ClientAuth = l.ClientAuth.tlsAuth()
	if cfg.ClientAuth == tls.NoClientCert {
		return cfg, nil
	}
	var err error
	cfg.ClientCAs, err = s.pool(ctx, l.ClientCA)
	return cfg, err
}

// towards returns how a backend is reached by TLS, nil where it isn't.
func (s *Server) towards(ctx context.Context, l *Listener, target backend.Target) (*tls.Config, error) {
	if !target.TLS() {
		return nil, nil
	}
	cfg := s.keys.constrained(&tls.Config{MinVersion: tls.VersionTLS12})
	if l.BackendTLS.ClientCertificate {
		cfg = s.keys.clientConfig(l.Backend)
	}
	cfg.ServerName = l.BackendTLS.Name
	if l.BackendTLS.CA.Path == "" {
		return cfg, nil
	}
	var err error
	cfg.RootCAs, err = s.pool(ctx, l.BackendTLS.CA)
	return cfg, err
}

func (s *Server) pool(ctx context.Context, store TrustStore) (*x509.CertPool, error) {
	certs, err := s.keys.Trust(ctx, store)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool, nil
}

// newRoutes makes a route for each listener, or none.
func (s *Server) newRoutes(ctx context.Context, listeners []Listener) ([]*route, error) {
	routes := make([]*route, 0, len(listeners))
	for i := range listeners {
		r, err := s.newRoute(ctx, &listeners[i])
		if err != nil {
			return nil, fmt.Errorf("listener %q: %w", listeners[i].Listen, err)
		}
		routes = append(routes, r)
	}
	return routes, nil
}
