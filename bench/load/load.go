// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package load makes TLS handshakes against a server over the network and says
// how many there were and how long they took. It runs in a process of its own,
// so that its CPU time is nobody else's: see [Serve].
package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Job says what handshakes are made.
type Job struct {
	Addr     string        // host:port
	Name     string        // server name that is sent and verified
	CA       string        // PEM file with the root of the server's chain
	Version  uint16        // tls.VersionTLS12 or tls.VersionTLS13, and no other
	Resume   bool          // each caller makes one full handshake and resumes it from then on
	Callers  int           // at once, each with one connection after another
	Duration time.Duration // from the first handshake to the beginning of the last
}

// Result is what came of a Job. Latencies are from the dial to the end of the
// handshake as the client sees it.
type Result struct {
	Handshakes int
	Elapsed    time.Duration
	P50, P99   time.Duration
}

// Rate returns handshakes per second.
func (r Result) Rate() float64 { return float64(r.Handshakes) / r.Elapsed.Seconds() }

// Run prepares the callers, each with a handshake whose chain is verified, calls
// ready, and makes handshakes for j.Duration once it returns. The first failed
// handshake ends all.
func Run(ctx context.Context, j Job, ready func() error) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	callers := make([]*caller, j.Callers)
	for i := range callers {
		c, err := newCaller(ctx, j)
		if err != nil {
			return Result{}, err
		}
		callers[i] = c
	}
	if err := ready(); err != nil {
		return Result{}, err
	}
	began := time.Now()
	var all sync.WaitGroup
	for _, c := range callers {
		all.Go(func() {
			if err := c.callUntil(ctx, began.Add(j.Duration)); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	elapsed := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	return sum(callers, elapsed)
}

func sum(callers []*caller, elapsed time.Duration) (Result, error) {
	var took []time.Duration
	for _, c := range callers {
		took = append(took, c.took...)
	}
	if len(took) == 0 {
		return Result{}, errors.New("load: no handshake was made: give more time")
	}
	slices.Sort(took)
	return Result{Handshakes: len(took), Elapsed: elapsed, P50: quantile(took, 0.50), P99: quantile(took, 0.99)}, nil
}

// quantile returns the smallest value that at least the part q of sorted is not
// above.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(q * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

// callUntil makes one handshake after another.
func (c *caller) callUntil(ctx context.Context, end time.Time) error {
	for time.Now().Before(end) {
		began := time.Now()
		took, err := c.call(ctx)
		if err != nil {
			return fmt.Errorf("load: handshake %d, begun %v before the end: %w", len(c.took)+1, end.Sub(began), err)
		}
		c.took = append(c.took, took)
	}
	return nil
}
