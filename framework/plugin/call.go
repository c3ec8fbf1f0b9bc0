// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
)

const (
	// retryPause is how long a call waits before it is made again.
	retryPause = 20 * time.Millisecond
	// maxDeaths is how many key processes may end during one call. It may be
	// what kills them.
	maxDeaths = 5
)

// call makes a call to the key process, and where that ends during the call, to
// its successor. Each call of the contract may be made more than once.
func call[T any](ctx context.Context, c *caller, rpc func(*wait, *link) (T, error)) (v T, err error) {
	for range maxDeaths {
		var died bool
		if v, died, err = callOne(ctx, c, rpc); !died {
			break
		}
	}
	return v, err
}

// callOne makes a call to one key process, and says whether that ended during
// the call. Where it is not there, or asks to be tried again, the call is made
// again, for c.wait at most and as long as ctx lasts; rpc gets this bound.
func callOne[T any](ctx context.Context, c *caller, rpc func(*wait, *link) (T, error)) (v T, died bool, err error) {
	waiting := &wait{of: ctx, end: time.Now().Add(c.wait)}
	defer waiting.stop()
	for {
		var l *link
		l, v, err = callOnce(waiting, c, rpc)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, errNoHope) || c.ctx.Err() != nil {
			return v, false, err
		}
		if endsIn(ctx, l, retryPause) {
			return v, true, err
		}
		if ctx.Err() != nil {
			return v, false, ctx.Err()
		}
		if waiting.context().Err() != nil {
			return v, false, err
		}
	}
}

// endsIn reports whether l, if there is one, is broken, which it may be a moment
// after a call failed. It waits until then, until pause is over, or until ctx ends.
func endsIn(ctx context.Context, l *link, pause time.Duration) bool {
	var gone <-chan struct{}
	if l != nil {
		gone = l.ctx.Done()
	}
	select {
	case <-gone:
		return true
	case <-ctx.Done():
	case <-time.After(pause):
	}
	return false
}

func callOnce[T any](waiting *wait, c *caller, rpc func(*wait, *link) (T, error)) (*link, T, error) {
	l := c.up()
	if l == nil {
		var err error
		if l, err = c.ready(waiting.context()); err != nil {
			var none T
			return nil, none, err
		}
	}
	v, err := rpc(waiting, l)
	return l, v, err
}

// wait is how long a call may wait before the key process has it. Most needn't, and
// so the context, with its timer, is made when it is asked for.
type wait struct {
	of   context.Context
	end  time.Time
	made context.Context // nil: nobody has asked yet
	drop context.CancelFunc
}

// context returns what ends with the wait. One goroutine asks.
func (w *wait) context() context.Context {
	if w.made == nil {
		w.made, w.drop = context.WithDeadline(w.of, w.end)
	}
	return w.made
}

func (w *wait) stop() {
	if w.drop != nil {
		w.drop()
	}
}

// meaning is fromStatus for a call with ctx. What gRPC calls cancelled while
// ctx goes on was cancelled because the connection was closed.
func meaning(ctx context.Context, err error) error {
	err = fromStatus(err)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return fmt.Errorf("%w: it ended during the call", ErrUnavailable)
	}
	return err
}

// gated makes a call of l through g. It returns when ctx ends, but the call
// keeps its slot until the process has ended it: a process that hangs is not
// given more and more. So gRPC is not told when ctx ends; the request says how
// long there is time, see timeLeft and within.
func gated[T any](ctx context.Context, waiting *wait, l *link, g *gate, rpc func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	if err := g.enter(waiting, l.ctx.Done()); err != nil {
		return none, err
	}
	type result struct {
		v   T
		err error
	}
	ended := make(chan result, 1)
	go func() {
		defer g.leave()
		v, err := rpc(l.ctx)
		ended <- result{v, err}
	}()
	select {
	case r := <-ended:
		return r.v, meaning(ctx, r.err)
	case <-ctx.Done():
		countLate(ctx, g, ended)
		return none, ctx.Err()
	}
}

// countLate counts a call that nobody waits for any more as late, from when the
// time is over that ctx gave it until it has ended.
func countLate[T any](ctx context.Context, g *gate, ended <-chan T) {
	end, ok := ctx.Deadline()
	if !ok {
		return
	}
	go func() {
		select {
		case <-ended:
			return
		case <-time.After(time.Until(end)):
		}
		g.late.Add(1)
		defer g.late.Add(-1)
		<-ended
	}()
}

// timeLeft returns how many milliseconds there are until ctx ends, at least 1; 0
// where nobody knows.
func timeLeft(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, time.Until(end).Milliseconds())
}

// within bounds ctx by what timeLeft told the key process.
func within(ctx context.Context, millis int64) (context.Context, context.CancelFunc) {
	if millis <= 0 || millis > math.MaxInt64/int64(time.Millisecond) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(millis)*time.Millisecond)
}

// large admits answers to anything but Select and Sign.
func large() grpc.CallOption { return grpc.MaxCallRecvMsgSize(maxLarge) }
