// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import "sync"

// maxIdle bounds the goroutines that a crew keeps. Each has a stack of some dozen
// KB, which the garbage collector shortens bit by bit where it is not used.
const maxIdle = 64

// crew runs functions on goroutines of which it keeps some for the functions to
// come. A handshake needs more stack than a new goroutine has, and to copy that
// to where there is more room costs a twentieth of an ECDSA handshake.
type crew struct {
	quit <-chan struct{} // closed when nothing is to be kept any more
	work chan func()     // to those that are idle
	idle chan struct{}   // one of each that is
	busy sync.WaitGroup  // functions
	kept sync.WaitGroup  // goroutines
}

func newCrew(quit <-chan struct{}) *crew {
	return &crew{quit: quit, work: make(chan func()), idle: make(chan struct{}, maxIdle)}
}

// Go runs f on a goroutine that is idle, or on a new one.
func (c *crew) Go(f func()) {
	c.busy.Add(1)
	select {
	case c.work <- f:
	default:
		c.kept.Go(func() { c.run(f) })
	}
}

func (c *crew) run(f func()) {
	for ok := true; ok; f, ok = c.next() {
		f()
		c.busy.Done()
	}
}

// next waits for the next function, and reports false if there is to be none.
func (c *crew) next() (f func(), ok bool) {
	select {
	case c.idle <- struct{}{}:
		defer func() { <-c.idle }()
	default: // there are enough
		return nil, false
	}
	select {
	case f := <-c.work:
		return f, true
	case <-c.quit:
		return nil, false
	}
}

// Wait waits for the functions to end. Nobody calls Go meanwhile.
func (c *crew) Wait() { c.busy.Wait() }

// End waits for the goroutines to end, which they do once quit is closed.
func (c *crew) End() { c.kept.Wait() }
