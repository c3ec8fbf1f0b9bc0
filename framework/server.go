// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

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

	conns      conns
	accepting  sync.WaitGroup // accept loops
	handshakes sync.WaitGroup // handshakes under way
	serving    sync.WaitGroup // HTTP servers and byte connections
	reloading  sync.Mutex     // held by Reload
	ended      sync.Once
	endErr     error // what ending gave
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
		log:              cfg.logger().Named("server"),
		handshakeTimeout: orDefault(cfg.Limits.HandshakeTimeout, defaultHandshakeTimeout),
		drain:            orDefault(cfg.Drain, defaultDrain),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	routes, err := s.newRoutes(ctx, cfg.Listeners)
	if err != nil {
		return nil, err
	}
	for i, r := range routes {
		if err := s.listen(ctx, i, cfg.Listeners[i], r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// listen binds the address of l. Connections are accepted by Run.
func (s *Server) listen(ctx context.Context, i int, cfg Listener, r *route) error {
	ln, err := bind(ctx, cfg.Listen)
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
	if r.handler != nil {
		l.handed = newHanded(ln.Addr())
	}
	s.listeners = append(s.listeners, l)
	return nil
}

// Keys returns the Server's key manager, which the Server closes.
func (s *Server) Keys() *Keys { return s.keys }

// Addrs returns the addresses that are listened on, in the order of
// Config.Listeners: with the port that a port 0 became.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.ln.Addr()
	}
	return addrs
}

// Run serves until ctx ends, or until the key manager is lost for good, which
// is an error. Then listeners are closed, open connections have Config.Drain to
// come to their end before they are cut, and the key manager is closed last.
// Run is called once.
func (s *Server) Run(ctx context.Context) error {
	serving, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	for _, l := range s.listeners {
		l.start(serving)
		s.log.Info("listening", zap.String(logging.FieldListener, l.cfg.Listen), zap.Stringer("address", l.ln.Addr()),
			zap.String("backend", l.cfg.Backend))
	}
	var lost error
	select {
	case <-ctx.Done():
	case <-s.keys.manager.Done():
		lost = &LostError{s.keys.tier, s.keys.manager.Err()}
	}
	s.log.Info("ending", zap.Duration("drain", s.drain))
	s.drainAll()
	cut()
	return errors.Join(lost, s.Close())
}

// LostError is returned by Run when the key manager is lost for good.
type LostError struct {
	Tier string
	Err  error // what the key process ended with; nil: not known
}

func (e *LostError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("key manager %q is lost", e.Tier)
	}
	return fmt.Sprintf("key manager %q is lost: %v", e.Tier, e.Err)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// drainAll closes the listeners and waits for connections to end, at most for
// s.drain.
func (s *Server) drainAll() {
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	s.closeListeners()
	s.accepting.Wait()
	s.conns.close(func(c *conn) bool { return c.shaking.Load() && !c.heard.Load() })
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.handshakes.Wait()
		for _, l := range s.listeners {
			l.finish(ctx)
		}
		s.conns.wg.Wait()
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		s.log.Warn("connections are cut", zap.Int("open", s.conns.count()))
		s.conns.close(func(*conn) bool { return true })
		<-finished
	}
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.ln.Close() // a second time is of no harm
	}
}

// Close ends the Server at once: it closes listeners and connections, and then
// the key manager. It is what a Server that doesn't Run needs, and is idempotent.
func (s *Server) Close() error {
	s.ended.Do(func() {
		s.closeListeners()
		s.accepting.Wait()
		s.conns.close(func(*conn) bool { return true })
		for _, l := range s.listeners {
			l.stop()
		}
		s.handshakes.Wait()
		s.serving.Wait()
		s.endErr = s.keys.Close()
	})
	return s.endErr
}

// Reload has the keystores and the trust stores read anew, all or nothing: on
// error the old state stays in use. Connections and sessions go on.
func (s *Server) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	cfgs := make([]Listener, len(s.listeners))
	for i, l := range s.listeners {
		cfgs[i] = l.cfg
	}
	routes, err := s.newRoutes(ctx, cfgs)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if err := s.keys.Reload(ctx); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	for i, l := range s.listeners {
		_ = l.route.Swap(routes[i]).close() // closes what is idle; the rest ends by itself
	}
	return nil
}

// withListeners returns c with the defaults of its listeners filled in, and the
// aliases that they demand told to the key manager.
func (c Config) withListeners() Config {
	c.Listeners = slices.Clone(c.Listeners)
	if len(c.Listeners) == 0 {
		c.Listeners = []Listener{{Listen: defaultListen}}
	}
	c.Options.Aliases = slices.Clone(c.Options.Aliases)
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.Backend == "" {
			l.Backend = defaultBackend
		}
		if l.Alias != "" && !slices.Contains(c.Options.Aliases, l.Alias) {
			c.Options.Aliases = append(c.Options.Aliases, l.Alias)
		}
	}
	return c
}

func (c *Config) checkListeners() error {
	for i := range c.Listeners {
		if err := c.Listeners[i].check(); err != nil {
			return fmt.Errorf("Config.Listeners[%d].%w", i, err)
		}
	}
	return nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
