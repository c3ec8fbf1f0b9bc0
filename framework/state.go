// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// state is what a Server works by. It is immutable; a changed configuration makes
// another, which takes its place as a whole.
type state struct {
	cfg       Config // with its defaults
	keys      *Keys
	content   *content      // that the routes of the listeners were made from
	listeners []*listener   // in the order of cfg.Listeners
	over      chan struct{} // closed when another state has taken its place
}

func newState(cfg Config, keys *Keys) *state {
	cfg.Limits.HandshakeTimeout = orDefault(cfg.Limits.HandshakeTimeout, defaultHandshakeTimeout)
	cfg.Drain = orDefault(cfg.Drain, defaultDrain)
	return &state{cfg: cfg, keys: keys, over: make(chan struct{})}
}

// plan is a state that is ready to be taken: what could fail is done.
type plan struct {
	*state
	routes []*route // of its listeners
	added  []*listener
}

// errEnding refuses a new state to a Server that ends.
var errEnding = errors.New("the server is ending")

// prepare makes the routes of next, and listens where the present state doesn't.
// On error nothing of it is left.
func (s *Server) prepare(ctx context.Context, next *state) (_ *plan, err error) {
	p := &plan{state: next}
	defer func() {
		if err != nil {
			p.discard()
		}
	}()
	if next.content == nil {
		next.content = newContent(next.keys)
	}
	p.routes, err = newRoutes(ctx, next.content, s.log, next.cfg.Listeners)
	if err != nil {
		return nil, err
	}
	next.content.forget()
	kept := slices.Clone(s.now.Load().listeners)
	for _, cfg := range next.cfg.Listeners {
		i := slices.IndexFunc(kept, func(l *listener) bool { return l.cfg.Listen == cfg.Listen })
		if i >= 0 {
			p.listeners, kept = append(p.listeners, kept[i]), slices.Delete(kept, i, i+1)
			continue
		}
		l, err := s.listen(ctx, &next.cfg, cfg)
		if err != nil {
			return nil, err
		}
		p.listeners, p.added = append(p.listeners, l), append(p.added, l)
	}
	return p, nil
}

// listen binds the address of cfg. Connections are not accepted yet.
func (s *Server) listen(ctx context.Context, all *Config, cfg Listener) (*listener, error) {
	ln, err := all.bind(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	l := &listener{
		server: s,
		cfg:    cfg,
		ln:     ln,
		prefix: strconv.Itoa(s.made) + "-",
		log:    s.log.With(zap.String(logging.FieldListener, cfg.Listen)),
		handed: newHanded(ln.Addr()),
	}
	l.tickets.roll()
	l.web = newWeb(s.ctx, l, all.Limits)
	s.made++
	return l, nil
}

// discard lets go of a plan that is not taken.
func (p *plan) discard() {
	for _, l := range p.added {
		_ = l.ln.Close()
	}
	for _, r := range p.routes {
		_ = r.close() // nothing was opened
	}
}

// take makes p the present state. What has no place in it ends by itself: its
// listeners drain, and its key manager serves the handshakes under way.
func (s *Server) take(p *plan) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.ending {
		p.discard()
		return errEnding
	}
	for i, l := range p.listeners {
		if old := l.route.Swap(p.routes[i]); old != nil {
			_ = old.close() // closes what is idle; the rest ends by itself
		}
	}
	old := s.now.Swap(p.state)
	close(old.over)
	if s.running() {
		for _, l := range p.added {
			l.start()
		}
	}
	s.retire(old, p.state)
	return nil
}

// running says whether Run accepts connections.
func (s *Server) running() bool {
	select {
	case <-s.serves:
		return true
	default:
		return false
	}
}
