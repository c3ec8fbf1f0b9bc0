// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

// What Observer.Reloaded is told of.
const (
	reloadedKeystores = "keystores"
	reloadedTrust     = "trust"
	reloadedCRL       = "crl"
	reloadedConfig    = "config"
)

// Reload has the keystores, trust stores and revocation lists read anew, all or
// nothing: on error the old state stays in use. Connections and sessions go on,
// but where client certificates are asked for. If others are trusted now, sessions
// begun before are not resumed, and HTTP connections end, their next request being
// answered 421; if others are revoked, sessions begin with a full handshake, and requests of
// those that are get 403. Where the key manager is one that can't reload, all the
// rest is read.
//
// Trust stores and revocation lists that change are taken in while Run serves,
// without a Reload.
func (s *Server) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if err := s.renew(ctx, s.now.Load().cfg); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return nil
}

// Apply makes the Server one of cfg, all or nothing, and does what Reload does
// besides: on error all stays as it is.
//
// Listeners are told apart by their Listen: those that are new are bound before
// anything else is changed; those that are gone accept nothing more, and their
// connections have cfg.Drain to end; the others keep socket, connections and
// session tickets. Open connections go on by the limits that they began with. A
// key manager of another configuration is started beside the one in use and takes
// its place when it is ready; the old one ends when the handshakes that it began,
// with clients and then with backends, have had their time.
//
// Log, Observer, Bind, Self and Tiers stay those that NewServer was given.
func (s *Server) Apply(ctx context.Context, cfg Config) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	err := s.apply(ctx, cfg)
	if !errors.As(err, new(*KeystoresError)) { // of which the configuration is no cause
		s.told(reloadedConfig, err)
	}
	return err
}

func (s *Server) apply(ctx context.Context, cfg Config) error {
	now := &s.now.Load().cfg
	cfg.Log, cfg.Observer, cfg.Bind, cfg.Tiers, cfg.Self = now.Log, now.Observer, now.Bind, now.Tiers, now.Self
	cfg = cfg.withListeners()
	if strings.HasPrefix(cfg.KeyManager, unixPrefix) != strings.HasPrefix(now.KeyManager, unixPrefix) {
		return fmt.Errorf("keymanager %q after %q takes a restart: what an endpoint's front gives up when it starts, key processes of its own would lack", cfg.KeyManager, now.KeyManager)
	}
	if err := cfg.checkListeners(); err != nil {
		return err
	}
	if err := cfg.checkKeys(); err != nil {
		return err
	}
	return s.renew(ctx, cfg)
}

// renew makes a state of cfg and takes it, or leaves all as it is.
func (s *Server) renew(ctx context.Context, cfg Config) error {
	now := s.now.Load()
	if now.cfg.sameKeys(cfg) {
		return s.renewWith(ctx, newState(cfg, now.keys))
	}
	levels := now.keys.levels.all()
	keys, err := open(ctx, cfg.leveled(now.cfg, levels), now.keys.Generation())
	s.told(reloadedKeystores, err)
	if err != nil {
		return err
	}
	if err := s.renewWith(ctx, newState(cfg, keys)); err != nil {
		return errors.Join(err, keys.Close())
	}
	s.setLogLevels(ctx, keys, logging.ChangedLevels(levels, now.keys.levels.all())) // set meanwhile
	return nil
}

// leveled returns c with the levels of the log that are in force, but for those that
// c has others of than old.
func (c Config) leveled(old Config, inForce map[string]string) Config {
	levels := maps.Clone(inForce)
	maps.Copy(levels, logging.ChangedLevels(old.LogLevels, c.LogLevels))
	c.LogLevels = levels
	return c
}

func (s *Server) renewWith(ctx context.Context, next *state) error {
	now := s.now.Load()
	p, err := s.prepare(ctx, next)
	s.toldContent(next.content, err)
	if err != nil {
		if slices.Equal(next.cfg.contentFiles(), now.cfg.contentFiles()) {
			s.amiss.Store(true)
		}
		return err
	}
	if next.keys == now.keys {
		err = s.reloadKeys(ctx, now.keys)
		s.told(reloadedKeystores, err)
	}
	if err != nil {
		p.discard()
		return err
	}
	if err := s.take(p); err != nil {
		return err
	}
	if next.keys == now.keys {
		s.setLogLevels(ctx, next.keys, logging.ChangedLevels(now.cfg.LogLevels, next.cfg.LogLevels))
	}
	return nil
}

// sameKeys says whether a key manager of c is one of o.
func (c Config) sameKeys(o Config) bool {
	return reflect.DeepEqual(c.ofKeys(), o.ofKeys()) && slices.Equal(c.trustFiles(), o.trustFiles())
}

// ofKeys returns c without what is nothing to a key manager. What isn't known to
// be that is something to it.
func (c Config) ofKeys() Config {
	c.Tiers, c.Listeners, c.Limits, c.DrainDelay, c.Drain = nil, nil, Limits{}, 0, 0
	c.Observer, c.Bind, c.Log, c.LogLevels = Observer{}, nil, nil, nil
	return c
}

func (s *Server) reloadKeys(ctx context.Context, keys *Keys) error {
	err := keys.Reload(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plugin.ErrUnsupported):
		s.log.Warn("this key manager can't reload: its keys stay as they are", zap.String(logging.FieldTier, keys.tier))
		return nil
	case errors.Is(err, plugin.ErrUnavailable), errors.Is(err, plugin.ErrClosed), errors.Is(err, context.Canceled):
		return err
	}
	return &KeystoresError{err}
}

// KeystoresError is returned by Reload and Apply when the key process did not take
// its keystores anew. It has logged why, as it does when it finds so by itself.
type KeystoresError struct{ Err error }

func (e *KeystoresError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *KeystoresError) Unwrap() error { return e.Err }

// setLogLevels passes levels on to the key process. That it doesn't take them is
// no reason to go back.
func (s *Server) setLogLevels(ctx context.Context, keys *Keys, levels map[string]string) {
	if len(levels) == 0 {
		return
	}
	if err := keys.SetLogLevels(ctx, levels); err != nil {
		s.log.Warn("the key process did not take the log levels", zap.Error(err))
	}
}

// told tells the Observer of a reading.
func (s *Server) told(what string, err error) {
	if s.observer.Reloaded != nil {
		s.observer.Reloaded(what, err)
	}
}

// toldContent tells of trust stores and revocation lists, as far as there are any
// and they were read.
func (s *Server) toldContent(c *content, err error) {
	if bad := (*contentError)(nil); errors.As(err, &bad) {
		s.told(bad.what, err)
		return
	}
	if err != nil {
		return
	}
	s.amiss.Store(false)
	if len(c.stores) > 0 {
		s.told(reloadedTrust, nil)
	}
	if len(c.files) > 0 {
		s.told(reloadedCRL, nil)
	}
}
