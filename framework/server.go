// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

const (
	defaultHandshakeTimeout = 10 * time.Second
	defaultDrain            = 30 * time.Second
)

// Server terminates TLS on its listeners with keys from a key manager and
// forwards to backends. It is what the tlsd daemon runs.
type Server struct {
	keys             *Keys
	log              *zap.Logger // named server
	listeners        []*listener
	handshakeTimeout time.Duration
	drain            time.Duration

	ctx context.Context // of handshakes, requests and byte streams; ends when connections are cut
	cut context.CancelFunc

	conns      conns
	accepting  sync.WaitGroup // accept loops
	handshakes sync.WaitGroup // handshakes under way
	serving    sync.WaitGroup // HTTP servers and byte connections

	serves    chan struct{} // closed when Run accepts connections
	reloading sync.Mutex    // held by Reload
	starting  sync.Mutex    // held while listeners are started, and guards closed
	closed    bool          // nothing is to be started any more
	close     func() error
}

// NewServer opens the key manager of cfg, reads the trust stores and listens on
// every address; connections wait until Run. On error nothing is left open. An
// address that the machine refuses is a *[ListenError].
//
// Without a listener in cfg there is one on 127.0.0.1:8443, and one without a
// backend shows the built-in page.
func NewServer(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withListeners()
	if err := cfg.checkListeners(); err != nil {
		return nil, err
	}
	keys, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return newServer(ctx, cfg, keys)
}

// newServer takes keys over, which it closes on error.
func newServer(ctx context.Context, cfg Config, keys *Keys) (_ *Server, err error) {
	s := &Server{
		keys:             keys,
		serves:           make(chan struct{}),
		log:              cfg.logger().Named("server"),
		handshakeTimeout: orDefault(cfg.Limits.HandshakeTimeout, defaultHandshakeTimeout),
		drain:            orDefault(cfg.Drain, defaultDrain),
	}
	s.ctx, s.cut = context.WithCancel(context.Background())
	s.close = sync.OnceValue(s.end)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	routes, err := newRoutes(ctx, keys, s.log, cfg.Listeners)
	if err != nil {
		return nil, err
	}
	for i, r := range routes {
		if err := s.listen(ctx, i, cfg, r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// listen binds the address of listener i. Connections are accepted by Run.
func (s *Server) listen(ctx context.Context, i int, all Config, r *route) error {
	cfg := all.Listeners[i]
	ln, err := all.bind(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	l := &listener{
		server:  s,
		cfg:     cfg,
		ln:      ln,
		tickets: new(tls.Config),
		prefix:  strconv.Itoa(i) + "-",
		log:     s.log.With(zap.String(logging.FieldListener, cfg.Listen)),
	}
	l.route.Store(r)
	if r.web() {
		l.handed, l.web = newHanded(ln.Addr()), newWeb(s.ctx, l)
	}
	s.listeners = append(s.listeners, l)
	return nil
}

// Keys returns the Server's key manager, which the Server closes.
func (s *Server) Keys() *Keys { return s.keys }

// Serving returns a channel that is closed when Run has begun to accept
// connections.
func (s *Server) Serving() <-chan struct{} { return s.serves }

// Addrs returns the addresses that are listened on, in the order of
// Config.Listeners: with the port that a port 0 became.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.ln.Addr()
	}
	return addrs
}

// Reload has the keystores and the trust stores read anew, all or nothing: on
// error the old state stays in use. Connections and sessions go on, but where
// client certificates are asked for and others are trusted now: sessions begun
// before are not resumed, and HTTP connections end with their next request. Where
// the key manager is one that can't reload, the trust stores alone are read.
func (s *Server) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	cfgs := make([]Listener, len(s.listeners))
	for i, l := range s.listeners {
		cfgs[i] = l.cfg
	}
	routes, err := newRoutes(ctx, s.keys, s.log, cfgs)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	err = s.keys.Reload(ctx)
	if errors.Is(err, plugin.ErrUnsupported) {
		s.log.Warn("this key manager can't reload: its keys stay as they are", zap.String(logging.FieldTier, s.keys.tier))
	} else if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	for i, l := range s.listeners {
		_ = l.route.Swap(routes[i]).close() // closes what is idle; the rest ends by itself
	}
	return nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
