// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/backend"
	"github.com/tlsd/tlsd/logging"
)

// retire ends what of old has no place in next, each in its own time, and at
// once where the Server is closed.
func (s *Server) retire(old, next *state) {
	for _, l := range old.listeners {
		if !slices.Contains(next.listeners, l) {
			_ = l.ln.Close() // now, so that the next state may have the address again
			s.serving.Go(func() { s.retireListener(l, next.cfg.Drain) })
		}
	}
	if old.keys != next.keys {
		s.serving.Go(func() { s.retireKeys(old) })
	}
}

// retireListener gives the open connections of a listener that is closed their
// time.
func (s *Server) retireListener(l *listener, drain time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, drain)
	defer cancel()
	l.log.Info("no longer listening", zap.Duration("drain", drain))
	l.finish(ctx)
	for ctx.Err() == nil && s.conns.some(l.owns) {
		select {
		case <-ctx.Done():
		case <-time.After(retireTick):
		}
	}
	s.conns.close(l.owns)
	l.stop()
}

// retireTick is how often a listener that is on its way out looks whether its
// last connection has ended.
const retireTick = 100 * time.Millisecond

// owns says whether c was accepted by l.
func (l *listener) owns(c *conn) bool { return c.listener == l }

// retireKeys ends the key manager of old when nothing that began with it may ask
// it any more: a route takes its key manager with it.
func (s *Server) retireKeys(old *state) {
	select {
	case <-s.ctx.Done():
	case <-time.After(old.cfg.asking()):
	}
	if err := old.keys.Close(); err != nil {
		s.log.Warn("the former key manager did not end well", zap.String(logging.FieldTier, old.keys.tier), zap.Error(err))
	}
}

// asking is how long a connection may ask its key manager from its beginning: until
// the end of its handshake, and where its backend asks for a certificate in turn,
// until it has been connected to, which is after the handshake.
func (c *Config) asking() time.Duration {
	var dial time.Duration
	for i := range c.Listeners {
		for _, site := range c.Listeners[i].sites() {
			target, err := backend.Parse(site.Backend)
			if err == nil && target.TLS() && site.BackendTLS.ClientCertificate {
				dial = max(dial, target.DialTime(site.ConnectTimeout))
			}
		}
	}
	return c.Limits.HandshakeTimeout + dial
}
