// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
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
	log      *zap.Logger // named server
	access   *zap.Logger // named access
	observer Observer
	now      atomic.Pointer[state]

	ctx context.Context // of handshakes, requests and byte streams; ends when connections are cut
	cut context.CancelFunc

	conns      conns
	accepting  sync.WaitGroup // accept loops
	handshakes *crew          // handshakes under way
	serving    sync.WaitGroup // HTTP servers and byte connections

	serves    chan struct{} // closed when Run accepts connections
	ends      chan struct{} // closed when Run was told to end
	drains    atomic.Bool   // nothing is to be accepted any more
	amiss     atomic.Bool   // the files of content in use can't be read, as the Observer was told last
	reloading sync.Mutex    // held while a new state is made and taken, and guards made
	made      int           // listeners so far
	starting  sync.Mutex    // held while listeners are started, and guards ending
	ending    bool          // nothing is to be started any more
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
		log: cfg.logger().Named("server"), access: cfg.logger().Named(logging.Access), observer: cfg.Observer,
		serves: make(chan struct{}), ends: make(chan struct{}),
	}
	s.now.Store(newState(cfg, keys))
	s.ctx, s.cut = context.WithCancel(context.Background())
	s.handshakes = newCrew(s.ctx.Done())
	s.close = sync.OnceValue(s.end)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	p, err := s.prepare(ctx, newState(cfg, keys))
	if err != nil {
		return nil, err
	}
	return s, s.take(p)
}

// Keys returns the Server's key manager, which the Server closes.
func (s *Server) Keys() *Keys { return s.now.Load().keys }

// Serving returns a channel that is closed when Run has begun to accept
// connections.
func (s *Server) Serving() <-chan struct{} { return s.serves }

// Addrs returns the addresses that are listened on, in the order of
// Config.Listeners: with the port that a port 0 became.
func (s *Server) Addrs() []net.Addr {
	var addrs []net.Addr
	for _, l := range s.now.Load().listeners {
		addrs = append(addrs, l.ln.Addr())
	}
	return addrs
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
