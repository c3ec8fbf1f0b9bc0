// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// caller calls a key process over the link that there is at the moment, and
// has calls wait where there is none. It neither makes links nor mends them:
// whoever embeds it tells it of each by put, lost and backOff. It is safe for
// concurrent use, but for these three, which one goroutine calls.
type caller struct {
	tier  string
	wait  time.Duration // how long a call waits for a link or a gate
	files *descriptors  // paths that the key process knows by other names
	log   *zap.Logger   // named plugin

	slot   atomic.Pointer[slot]
	newest newest

	mu     sync.Mutex // guards levels
	levels map[string]string

	ctx    context.Context // ends with cancel
	cancel context.CancelFunc
}

// slot is what calls find. It is replaced as a whole, and changed is closed when
// that has happened.
type slot struct {
	link    *link                // nil: there is none at the moment
	about   *pb.DescribeResponse // of the newest link; nil before the first
	since   time.Time            // that there is a link, or none
	why     error                // why there is none
	hopeful bool                 // without a link: calls may wait for one
	links   uint64               // so far
	changed chan struct{}
}

// defaultWait is how long a call waits for the key process, if nothing is said.
const defaultWait = 2 * time.Second

// newCaller returns a caller without a link, for which calls wait.
func newCaller(tier string, wait time.Duration, levels map[string]string, log *zap.Logger) *caller {
	c := &caller{tier: tier, wait: wait, files: &descriptors{}, levels: map[string]string{}, log: log.Named("plugin")}
	maps.Copy(c.levels, levels)
	if c.wait <= 0 {
		c.wait = defaultWait
	}
	c.newest.init()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.slot.Store(&slot{since: time.Now(), why: errors.New("it is being started"), hopeful: true, changed: make(chan struct{})})
	return c
}

// put makes l the link that calls go to, and tells its key process of log
// levels that were set while it started.
func (c *caller) put(l *link) {
	c.replaceSlot(slot{link: l, about: l.about, since: l.since, links: c.slot.Load().links + 1})
	c.catchUp(l)
}

// lost says that there is no link, and why, and that calls may wait for one.
func (c *caller) lost(why error) { c.without(why, true) }

// backOff says that there is no link, and why, nor will be soon: calls fail at
// once.
func (c *caller) backOff(why error) { c.without(why, false) }

func (c *caller) without(why error, hopeful bool) {
	s := *c.slot.Load()
	if s.link != nil {
		s.since = time.Now()
	}
	s.link, s.why, s.hopeful = nil, why, hopeful
	c.replaceSlot(s)
}

func (c *caller) replaceSlot(s slot) {
	s.changed = make(chan struct{})
	close(c.slot.Swap(&s).changed)
}

// errNoHope is an ErrUnavailable that waiting doesn't help.
var errNoHope = fmt.Errorf("%w, and the next attempt to get it back is some time away", ErrUnavailable)

// ready returns the link that calls go to, and waits for one until ctx ends,
// where there is hope.
func (c *caller) ready(ctx context.Context) (*link, error) { return c.find(ctx, false) }

// find is ready, which waits for ever so long if it is patient.
func (c *caller) find(ctx context.Context, patient bool) (*link, error) {
	for {
		s := c.slot.Load()
		switch {
		case s.link != nil && !s.link.gone():
			return s.link, nil
		case c.ctx.Err() != nil:
			return nil, ErrClosed
		case s.link == nil && !s.hopeful && !patient:
			return nil, fmt.Errorf("%w: %w", errNoHope, s.why)
		}
		select {
		case <-s.changed:
		case <-c.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ErrUnavailable
		}
	}
}

// up returns the link that calls go to, nil if there is none.
func (c *caller) up() *link {
	if l := c.slot.Load().link; l != nil && !l.gone() {
		return l
	}
	return nil
}

// Describe says what is running, or was last.
func (c *caller) Describe() Description {
	about := c.slot.Load().about
	d := Description{
		Name:     clean(about.GetName(), maxExcerpt),
		Version:  clean(about.GetVersion(), maxExcerpt),
		Contract: int(about.GetContractVersion()),
		Isolated: true,
	}
	if l := c.up(); l != nil {
		d.PID = l.pid
	}
	return d
}

// Status says how the key process is doing.
func (c *caller) Status() Status {
	s := c.slot.Load()
	st := Status{Since: s.since, Restarts: max(s.links, 1) - 1, Err: s.why}
	switch {
	case s.link == nil:
	case s.link.gone():
		st.Since, st.Err = time.Now(), context.Cause(s.link.ctx)
	default:
		st.Up, st.PID, st.Watched, st.Err = true, s.link.pid, s.link.watched(), nil
	}
	return st
}

// Generation returns the number of the newest view that was heard of, by
// whatever reply.
func (c *caller) Generation() uint64 { return c.newest.get() }

// SetLogLevels sets the levels of the key process's loggers, now and after each
// restart. Where there is no process at the moment, the next one starts with
// them. A level that is none is an error and changes nothing.
func (c *caller) SetLogLevels(ctx context.Context, levels map[string]string) error {
	for name, level := range levels {
		if _, err := logging.ParseLevel(level); err != nil {
			return fmt.Errorf("logger %q: %w", name, err)
		}
	}
	c.mu.Lock()
	maps.Copy(c.levels, levels)
	c.mu.Unlock()
	l := c.up()
	if l == nil {
		return nil
	}
	_, err := l.api.SetLogLevel(ctx, &pb.SetLogLevelRequest{Levels: levels})
	if l.gone() {
		return nil
	}
	return fromStatus(err)
}

func (c *caller) currentLevels() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.levels)
}

// catchUp tells l of levels that were set while it started.
func (c *caller) catchUp(l *link) {
	levels := c.currentLevels()
	if len(levels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, c.wait)
	defer cancel()
	_, _ = l.api.SetLogLevel(ctx, &pb.SetLogLevelRequest{Levels: levels})
}

// spelled returns err with the paths as the user gave them.
func (c *caller) spelled(err error) error {
	if err == nil {
		return nil
	}
	text := c.files.rename(err.Error())
	if text == err.Error() {
		return err
	}
	return &remoteError{text: text, meaning: err}
}
