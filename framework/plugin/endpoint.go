// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// DialOptions say how an endpoint is used.
type DialOptions struct {
	Aliases    []string      // demanded: an endpoint without one of them is refused
	PluginWait time.Duration // how long a call waits while there is no connection; 0: 2 s
	Log        *zap.Logger   // the root logger; nil: none
}

// Endpoint is a key manager in a process that somebody else runs. It connects
// again when the connection ends, and supervises nothing. It is safe for
// concurrent use.
type Endpoint struct {
	*caller
	path    string
	aliases []string
	done    chan struct{}
	running sync.WaitGroup
	close   func() error
}

var _ Manager = (*Endpoint)(nil)

// mostClosed is after how many connections that an endpoint closes at once it
// counts as one that doesn't admit this user.
const mostClosed = 3

// Pauses between two attempts to connect, each twice as long as the one before.
// Longer ones spare nobody anything.
const (
	firstRedial   = 50 * time.Millisecond
	longestRedial = 2 * time.Second
)

// Dial connects to the endpoint whose socket is at path. ctx bounds that, and so
// do 10 s, in which an endpoint that is being started may get ready. The error
// is ErrUnreachable where none was there. Log levels are the endpoint's own until
// they are set here.
func Dial(ctx context.Context, path string, opt DialOptions) (*Endpoint, error) {
	log := opt.Log
	if log == nil {
		log = zap.NewNop()
	}
	e := &Endpoint{
		caller: newCaller("unix:"+path, opt.PluginWait, nil, log),
		path:   path, aliases: opt.Aliases, done: make(chan struct{}),
	}
	e.close = sync.OnceValue(e.end)
	l, err := e.firstLink(ctx)
	if err != nil {
		e.cancel()
		return nil, err
	}
	e.put(l)
	e.running.Go(func() { e.keep(l) })
	if err := e.demand(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.running.Go(func() { e.watchAliases() })
	return e, nil
}

// firstLink connects, and tries again for a time where nobody is there.
func (e *Endpoint) firstLink(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	closed := 0
	for pause := firstRedial; ; pause = min(2*pause, longestRedial) {
		l, err := e.connect(ctx)
		if errors.Is(err, errClosed) {
			closed++
		}
		if err == nil || closed == mostClosed || !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrUnavailable) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause + rand.N(pause/4)):
		}
	}
}

// connect makes a link, and learns of the generation there, in startTimeout at most.
func (e *Endpoint) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	l, err := dialEndpoint(ctx, e.path)
	if err != nil {
		return nil, err
	}
	health, err := l.api.Health(ctx, &pb.HealthRequest{})
	if err != nil {
		l.end(err)
		return nil, fmt.Errorf("endpoint %q: %w", e.path, fromStatus(err))
	}
	e.newest.raise(health.GetGeneration(), "connected to the endpoint")
	go l.attend(usualPatience())
	e.log.Info("connected to the endpoint", zap.String("socket", e.path), zap.String(logging.FieldTier, clean(l.about.GetName(), maxExcerpt)),
		zap.String("version", clean(l.about.GetVersion(), maxExcerpt)), zap.Int("pid", l.pid), zap.Uint64(logging.FieldGeneration, health.GetGeneration()))
	return l, nil
}

// keep connects again whenever the connection ends, until Close.
func (e *Endpoint) keep(l *link) {
	for l != nil {
		select {
		case <-e.ctx.Done():
			e.lost(ErrClosed)
			l.end(ErrClosed)
			return
		case <-l.ctx.Done():
		}
		why := context.Cause(l.ctx)
		e.log.Warn("endpoint lost", zap.String("socket", e.path), zap.String(logging.FieldReason, why.Error()))
		l = e.redial(why)
	}
}

// redial connects until it works, and makes the link the one that calls go to.
// It returns nil after Close. Calls may wait for it as long as it may be there
// any moment.
func (e *Endpoint) redial(why error) *link {
	e.lost(why)
	said := false
	for since, pause := time.Now(), firstRedial; ; pause = min(2*pause, longestRedial) {
		select {
		case <-e.ctx.Done():
			return nil
		case <-time.After(pause + rand.N(pause/4)):
		}
		l, err := e.connect(e.ctx)
		if err == nil {
			e.put(l)
			return l
		}
		if e.ctx.Err() != nil || time.Since(since) < e.wait {
			continue
		}
		e.backOff(err)
		if !said {
			e.log.Error("endpoint can't be reached", zap.String("socket", e.path), zap.NamedError(logging.FieldError, err))
		}
		said = true
	}
}

// demand fails where the endpoint has no entry of a demanded alias.
func (e *Endpoint) demand(ctx context.Context) error {
	if len(e.aliases) == 0 {
		return nil
	}
	entries, err := e.List(ctx)
	if err != nil {
		return fmt.Errorf("endpoint %q: look for the alias %q: %w", e.path, e.aliases[0], err)
	}
	var there []string
	for _, entry := range entries {
		if entry.Kind == keymanager.KindKey {
			there = append(there, entry.Alias)
		}
	}
	var errs []error
	for _, want := range e.aliases {
		if !slices.ContainsFunc(there, func(a string) bool { return strings.EqualFold(a, want) }) {
			errs = append(errs, fmt.Errorf("endpoint %q: there is no entry %q; there are %q", e.path, want, there))
		}
	}
	return errors.Join(errs...)
}

// watchAliases looks for the demanded aliases in each generation, and says
// which are missing.
func (e *Endpoint) watchAliases() {
	if len(e.aliases) == 0 {
		return
	}
	_ = e.Watch(e.ctx, func(c keymanager.Change) {
		if err := e.demand(e.ctx); err != nil && e.ctx.Err() == nil {
			e.log.Error("a demanded entry is missing", zap.Uint64(logging.FieldGeneration, c.Generation), zap.NamedError(logging.FieldError, err))
		}
	})
}

// Trust asks the endpoint for a trust store of its own. One that it doesn't have
// is read here, if it is PEM. Type and password are the endpoint's to know.
func (e *Endpoint) Trust(ctx context.Context, path, typ string, pw keymanager.PasswordRef) ([][]byte, []string, error) {
	ders, warnings, err := e.caller.Trust(ctx, path, "", keymanager.PasswordRef{})
	if errors.Is(err, ErrNotAllowed) {
		return trustedPEM(path, typ, "it is none of the endpoint's, which --client-ca of tlsd keymanager serve names")
	}
	return ders, warnings, err
}

// Done is closed after Close.
func (e *Endpoint) Done() <-chan struct{} { return e.done }

// Err returns nil: an endpoint that is lost may come back at any time.
func (e *Endpoint) Err() error { return nil }

// Close ends the connection. Calls under way fail.
func (e *Endpoint) Close() error { return e.close() }

func (e *Endpoint) end() error {
	e.cancel()
	e.running.Wait()
	close(e.done)
	return nil
}
