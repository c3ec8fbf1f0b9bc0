// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"runtime"
	"sync/atomic"
)

// maxWaiting bounds the calls that wait for one gate.
const maxWaiting = 4096

// gate bounds the calls of one kind that one key process works on. The others
// wait in the order in which they came: a full channel hands each slot that is
// freed to the sender that has waited longest.
type gate struct {
	slots   chan struct{}
	waiting atomic.Int64
}

func newGate() *gate { return &gate{slots: make(chan struct{}, 4*runtime.GOMAXPROCS(0))} }

// enter takes a slot, which leave gives back. It fails with ErrBusy if too many
// wait, and with ErrUnavailable when ctx ends or gone is closed first.
func (g *gate) enter(ctx context.Context, gone <-chan struct{}) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	if g.waiting.Add(1) > maxWaiting {
		g.waiting.Add(-1)
		return ErrBusy
	}
	defer g.waiting.Add(-1)
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-gone:
		return ErrUnavailable
	case <-ctx.Done():
		return ErrUnavailable
	}
}

func (g *gate) leave() { <-g.slots }
