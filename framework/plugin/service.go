// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
	"github.com/tlsd/tlsd/logging"
)

// service is a tier at work. It holds what key managers have in common whatever
// they run behind: keys by id, generations, the refusal of what is no
// handshake, the log of signatures, panics turned into errors. It knows no
// transport: the gRPC server of a child and Local are thin over it.
type service struct {
	km     keymanager.KeyManager
	log    *zap.Logger     // logging.KeyManager, with the tier
	limits keystore.Limits // of trust stores
	feed   *feed
	keys   *keyTable

	reloading sync.Mutex // one Reload at a time, so that generations are counted right
	listing   sync.Mutex // one List for the key table at a time
	lists     atomic.Uint64

	stop    context.CancelFunc
	running sync.WaitGroup
}

// openService opens the tier. On error nothing is left running.
func openService(ctx context.Context, tier keymanager.Tier, env keymanager.Env) (_ *service, err error) {
	s := &service{log: env.Logger(), limits: keystore.Limits{Iterations: env.Options.Iterations}}
	defer s.recovered("open", &err)
	s.km, err = tier.Open(ctx, env)
	if err != nil {
		return nil, err
	}
	if s.km == nil {
		return nil, errors.New("the tier opened no key manager")
	}
	first := env.FirstGeneration
	if n, ok := s.km.(keymanager.Numbered); ok {
		first = n.Generation()
	}
	s.feed = newFeed(keymanager.Change{Generation: first, Cause: "start"})
	s.keys = newKeyTable(first)
	s.refresh(ctx)
	s.start()
	return s, nil
}

// start begins to watch for new generations.
func (s *service) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.followKeys(ctx) })
	if w, ok := s.km.(keymanager.Watcher); ok {
		s.running.Go(func() { s.watch(ctx, w) })
	}
}

// close ends what start began and all following, and drops the keys.
func (s *service) close() {
	s.stop()
	s.running.Wait()
	s.feed.setBroken(ErrClosed)
	s.keys.clear()
}

// recovered turns a panic of the tier into an error and one line of the log.
// It is deferred by whatever calls the tier.
func (s *service) recovered(op string, err *error) {
	if p := recover(); p != nil {
		logPanic(s.log, op, p)
		*err = fmt.Errorf("%s: the key manager panicked: %v", op, p)
	}
}

// Select returns the tier's answer, whole and with a generation, and remembers
// its key.
func (s *service) Select(ctx context.Context, h *keymanager.Hello) (c *keymanager.Credential, err error) {
	defer s.recovered("select", &err)
	if h.Role != keymanager.RoleServer && h.Role != keymanager.RoleClient {
		return nil, fmt.Errorf("select for role %q: neither server nor client", h.Role)
	}
	before := s.feed.newest()
	found, err := s.km.Select(ctx, h)
	if err != nil {
		return nil, err
	}
	if c, err = s.complete(found, before); err != nil {
		return nil, err
	}
	s.keys.put(keymanager.KeyIDOf(c.Leaf), c.Key, c.Generation)
	return c, nil
}

// complete checks that an answer is one, and fills in what a tier may leave
// out: the parsed leaf, and the generation where the tier doesn't count.
func (s *service) complete(found *keymanager.Credential, generation uint64) (*keymanager.Credential, error) {
	if found == nil {
		return nil, errors.New("select: the tier returned neither credential nor error")
	}
	c := *found
	if c.Key == nil || len(c.Chain) == 0 {
		return nil, fmt.Errorf("select: credential %q of builder %d lacks key or chain", c.Alias, c.Builder)
	}
	if c.Leaf == nil {
		leaf, err := x509.ParseCertificate(c.Chain[0])
		if err != nil {
			return nil, fmt.Errorf("select: leaf of credential %q of builder %d: %w", c.Alias, c.Builder, err)
		}
		c.Leaf = leaf
	}
	if s.counts() {
		c.Generation = generation
	} else if c.Generation > generation {
		s.feed.raise(c.Generation, "seen in an answer")
	}
	return &c, nil
}

// counts reports whether generations are counted here, since nobody else does.
func (s *service) counts() bool {
	if _, ok := s.km.(keymanager.Numbered); ok {
		return false
	}
	_, ok := s.km.(keymanager.Watcher)
	return !ok
}

// list returns what the tier holds and the generation that it is at least of.
func (s *service) list(ctx context.Context) (entries []keymanager.Entry, generation uint64, err error) {
	defer s.recovered("list", &err)
	l, ok := s.km.(keymanager.Lister)
	if !ok {
		return nil, 0, fmt.Errorf("list: %w", ErrUnsupported)
	}
	generation = s.feed.newest()
	entries, err = l.List(ctx)
	return entries, generation, err
}

// reload has the tier read its keystores anew and returns the generation after
// that and whether it is a new one. A tier that numbers its views may have a new
// one and an error too: of several keystores some could be read.
func (s *service) reload(ctx context.Context) (generation uint64, changed bool, err error) {
	defer s.recovered("reload", &err)
	r, ok := s.km.(keymanager.Reloader)
	if !ok {
		return 0, false, fmt.Errorf("reload: %w", ErrUnsupported)
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	before := s.feed.newest()
	err = r.Reload(ctx)
	generation = s.feed.newest()
	if n, ok := s.km.(keymanager.Numbered); ok {
		generation = n.Generation()
	} else if s.counts() && err == nil {
		generation++
	}
	s.feed.raise(generation, "reload")
	return generation, generation > before, err
}

// watchAgain is how long a Watch that ended too early is left alone.
const watchAgain = time.Second

// watch takes in the generations that the tier tells of. While it is not
// watched, followers of the feed are told so, because answers that they keep
// may be out of date.
func (s *service) watch(ctx context.Context, w keymanager.Watcher) {
	for {
		err := s.watchOnce(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the tier ended it")
		}
		s.log.Error("watch ended", zap.String(logging.FieldError, err.Error()))
		s.feed.setBroken(fmt.Errorf("watch: %w: %v", ErrUnavailable, err))
		select {
		case <-time.After(watchAgain):
		case <-ctx.Done():
			return
		}
		s.feed.setBroken(nil)
	}
}

func (s *service) watchOnce(ctx context.Context, w keymanager.Watcher) (err error) {
	defer s.recovered("watch", &err)
	return w.Watch(ctx, s.feed.publish)
}
