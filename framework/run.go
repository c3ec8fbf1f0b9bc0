// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
)

// Run serves until ctx ends or Close is called, or until the key manager is lost
// for good, which is an error. From then on Ready is an error; connections are accepted for
// Config.DrainDelay, so that who sends them notices; then listeners are closed,
// open connections have Config.Drain to come to their end before they are cut,
// and the key manager is closed last. Where the cause of ctx's end is
// ErrHandedOver, nothing is waited for before listeners are closed, and clients
// that have not yet said a word are not turned away.
//
// Run is called once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	lost := s.awaitEnd(ctx)
	close(s.ends)
	handedOver := errors.Is(context.Cause(ctx), ErrHandedOver)
	if lost == nil && !handedOver {
		lost = s.linger()
	}
	s.log.Info("ending", zap.Duration("drain", s.now.Load().cfg.Drain))
	s.drainAll(handedOver)
	return errors.Join(lost, s.Close())
}

// linger goes on accepting connections for Config.DrainDelay.
func (s *Server) linger() error {
	delay := s.now.Load().cfg.DrainDelay
	if delay == 0 {
		return nil
	}
	s.log.Info("not ready any more", zap.Duration("delay", delay))
	ctx, cancel := context.WithTimeout(s.ctx, delay) // s.ctx: Close doesn't wait for it
	defer cancel()
	return s.awaitEnd(ctx)
}

// awaitEnd returns nil when ctx ends or the Server is closed, and a LostError when
// the key manager in use is lost.
func (s *Server) awaitEnd(ctx context.Context) error {
	for {
		now := s.now.Load()
		select {
		case <-ctx.Done():
			return nil
		case <-s.ctx.Done():
			return nil
		case <-now.over:
		case <-now.keys.manager.Done():
			if s.ctx.Err() != nil { // Close has closed it
				return nil
			}
			if s.now.Load() == now {
				return &LostError{now.keys.tier, now.keys.manager.Err()}
			}
		}
	}
}

// ErrHandedOver is the cause that ends Run's context when another process has
// the listening sockets from now on.
var ErrHandedOver = errors.New("another process has taken over")

// start begins to accept on each listener.
func (s *Server) start() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.ending {
		return errors.New("run: the server is closed")
	}
	for _, l := range s.now.Load().listeners {
		l.start()
	}
	s.serving.Go(s.watch)
	close(s.serves)
	return nil
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
// Config.Drain. A connection without a word may be a client's that was accepted just
// now; unless another process took over it can't be told from a probe, and is
// not waited for.
func (s *Server) drainAll(handedOver bool) {
	s.startNothing()
	ctx, cancel := context.WithTimeout(context.Background(), s.now.Load().cfg.Drain)
	defer cancel()
	s.drains.Store(true)
	s.closeListeners()
	s.accepting.Wait()
	s.conns.close(func(c *conn) bool { return !handedOver && c.shaking.Load() && !c.heard.Load() })
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.handshakes.Wait()
		var finishing sync.WaitGroup
		for _, l := range s.now.Load().listeners {
			finishing.Go(func() { l.finish(ctx) })
		}
		s.conns.wg.Wait()
		finishing.Wait()
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		s.log.Warn("connections are cut", zap.Int("open", s.conns.count()))
		s.conns.close(func(*conn) bool { return true })
		<-finished
	}
}

// startNothing has the present state be the last one.
func (s *Server) startNothing() {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.ending = true
}

func (s *Server) closeListeners() {
	for _, l := range s.now.Load().listeners {
		_ = l.ln.Close() // a second time is of no harm
	}
}

// Close ends the Server at once: it closes listeners and connections, and then
// the key manager. A Server that doesn't Run needs it; one that runs is ended by
// it without draining. It is idempotent.
func (s *Server) Close() error { return s.close() }

func (s *Server) end() error {
	s.startNothing()
	s.closeListeners()
	s.accepting.Wait()
	s.conns.close(func(*conn) bool { return true })
	s.cut()
	s.handshakes.End()
	now := s.now.Load()
	for _, l := range now.listeners {
		l.stop()
	}
	s.serving.Wait()
	return now.keys.Close()
}
