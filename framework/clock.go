// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"
)

// clock is what a connection knows of its time. One timer serves both limits; it
// needs no goroutine while it runs, and reading and writing cost it a store.
type clock struct {
	timer    atomic.Pointer[time.Timer] // nil: no limit
	last     atomic.Int64               // when bytes passed last, in nanoseconds since the connection began
	spoke    atomic.Int64               // when the client sent some last, likewise
	waits    atomic.Int32               // requests that wait for a backend
	patience atomic.Int64               // until when the last of these may wait, likewise
	retired  atomic.Bool                // its next answer by HTTP is its last
	phase    atomic.Int32               // http.ConnState; 0 for bytes, too
}

const never = time.Duration(math.MaxInt64)

// watch has the limits watched, once the handshake is over.
func (c *conn) watch() {
	if c.limits.Idle == 0 && c.limits.Lifetime == 0 {
		return
	}
	c.touch(true)
	t := time.AfterFunc(never, c.tick)
	c.timer.Store(t)
	t.Reset(c.left())
}

// stop ends the watch.
func (c *conn) stop() {
	if t := c.timer.Load(); t != nil {
		t.Stop()
	}
}

// touch notes that bytes pass, and whether the client sent them.
func (c *conn) touch(spoke bool) {
	if c.limits.Idle == 0 {
		return
	}
	now := int64(time.Since(c.began))
	c.last.Store(now)
	if spoke {
		c.spoke.Store(now)
	}
}

// await notes that for as long as d it is a backend that keeps the client
// waiting, which has time limits of its own.
func (c *conn) await(d time.Duration) {
	c.patience.Store(int64(time.Since(c.began) + d))
	c.waits.Add(1)
}

// answered notes that one wait is over: a client that doesn't read what it waited
// for is idle.
func (c *conn) answered() { c.waits.Add(-1) }

// tick ends c if its time is over, and else comes again when it may be. A wait may
// be over sooner than it could be.
func (c *conn) tick() {
	if next := c.left(); next > 0 {
		if c.waits.Load() > 0 && c.limits.Idle > 0 {
			next = min(next, c.limits.Idle)
		}
		c.timer.Load().Reset(next)
		return
	}
	if c.leftIdle() <= 0 {
		c.expire(ConnectionIdle)
	} else {
		c.expire(ConnectionLifetime)
	}
}

// left returns how long c has at least.
func (c *conn) left() time.Duration { return min(c.leftIdle(), c.leftOld()) }

func (c *conn) leftIdle() time.Duration {
	if c.limits.Idle == 0 {
		return never
	}
	left, since := c.limits.Idle, c.last.Load()
	switch http.ConnState(c.phase.Load()) {
	case http.StateIdle: // between requests
		left += lingerTime // net/http comes first: it ends HTTP/2 in good order
	case http.StateActive:
		if c.waits.Load() > 0 {
			since = max(since, c.patience.Load())
		}
	}
	return left - time.Since(c.began) + time.Duration(since)
}

// leftOld returns how much is left of c's lifetime. A connection with requests
// is told to come to its end first, and has the time of a drain for that.
func (c *conn) leftOld() time.Duration {
	if c.limits.Lifetime == 0 {
		return never
	}
	left := c.limits.Lifetime - time.Since(c.began)
	if left > 0 || c.site.handler == nil || http.ConnState(c.phase.Load()) == http.StateHijacked {
		return left
	}
	c.retired.Store(true)
	return left + c.listener.server.now.Load().cfg.Drain
}

// expire ends c by a limit: the client is told that nothing follows, as far as
// it takes it, and what the backend does for it is broken off.
func (c *conn) expire(limit string) {
	c.settle(limit)
	_ = c.Conn.SetWriteDeadline(time.Now().Add(lingerTime)) // a write that is stuck holds what is to be told
	_ = c.tls.CloseWrite()
	c.closeGently()
	if c.cancel != nil {
		c.cancel()
	}
}
