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

// retryPause is how long a call waits before it is made again.
const retryPause = 20 * time.Millisecond

// call makes a call to the key process. Where that is not there, ends during
// the call, or asks to be tried again, the call is made to it or its successor
// again, for c.wait at most and as long as ctx lasts; rpc gets this bound as
// waiting. Each call of the contract may be made twice.
func call[T any](ctx context.Context, c *caller, rpc func(waiting context.Context, l *link) (T, error)) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	for {
		v, err := callOnce(waiting, c, rpc)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, errNoHope) || c.ctx.Err() != nil {
			return v, err
		}
		select {
		case <-waiting.Done():
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return v, err
		case <-time.After(retryPause):
		}
	}
}

func callOnce[T any](waiting context.Context, c *caller, rpc func(context.Context, *link) (T, error)) (T, error) {
	l, err := c.ready(waiting)
	if err != nil {
		var none T
		return none, err
	}
	return rpc(waiting, l)
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
func gated[T any](ctx, waiting context.Context, l *link, g *gate, rpc func(context.Context) (T, error)) (T, error) {
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
		return none, ctx.Err()
	}
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
