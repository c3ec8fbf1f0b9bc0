// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync"
	"sync/atomic"
)

const (
	// maxGeneration is the largest number that a key manager may begin with.
	maxGeneration = 1 << 62
	// maxBelieved is the largest number that a generation is believed to have. No
	// honest key manager comes near; one that lies could otherwise leave no number
	// for its successors.
	maxBelieved = maxGeneration / 2
)

// newest is the newest generation that was heard of, from whatever reply.
type newest struct {
	number atomic.Uint64 // changed by the holder of mu
	mu     sync.Mutex    // guards what follows
	cause  string
	raised chan struct{} // closed and made anew with each raise
}

func (n *newest) init() { n.raised = make(chan struct{}) }

func (n *newest) get() uint64 { return n.number.Load() }

// raise tells of a generation, old and unbelievable ones too.
func (n *newest) raise(number uint64, cause string) {
	if number <= n.get() || number > maxBelieved {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if number <= n.get() {
		return
	}
	n.number.Store(number)
	n.cause = cause
	close(n.raised)
	n.raised = make(chan struct{})
}

// read returns the newest generation, why it began, and a channel that is closed
// when there is a newer one.
func (n *newest) read() (number uint64, cause string, raised <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.get(), n.cause, n.raised
}
