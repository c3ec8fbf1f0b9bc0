// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
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
	ended   atomic.Uint64 // calls so far
	late    atomic.Int64  // calls that go on though their time is over
	seen    uint64        // what ended was when stuck looked last
}

func newGate() *gate { return &gate{slots: make(chan struct{}, 4*runtime.GOMAXPROCS(0))} }

// enter takes a slot, which leave gives back. It fails with ErrBusy if too many
// wait, and with ErrUnavailable when waiting ends or gone is closed first.
func (g *gate) enter(waiting *wait, gone <-chan struct{}) error {
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
	case <-waiting.context().Done():
		return ErrUnavailable
	}
}

func (g *gate) leave() {
	g.ended.Add(1)
	<-g.slots
}

// stuck returns an error if calls, of the kind that is named, are late and none
// has ended since it was asked last. One goroutine asks.
func (g *gate) stuck(kind string) error {
	before, late := g.seen, g.late.Load()
	g.seen = g.ended.Load()
	if g.seen != before || late == 0 {
		return nil
	}
	return fmt.Errorf("%d calls of %s go on though their time is over, and none ends", late, kind)
}
