// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"sync"
	"sync/atomic"
	"time"
)

// onceASecond lets one log line a second pass, so that a fault that each
// connection meets doesn't fill the disk. The zero value is ready.
type onceASecond struct {
	next    atomic.Int64 // unix nanoseconds
	dropped atomic.Int64
}

// pass says whether a line may be written now, and how many were not since the
// last one.
func (o *onceASecond) pass() (dropped int64, ok bool) {
	now := time.Now().UnixNano()
	next := o.next.Load()
	if now < next || !o.next.CompareAndSwap(next, now+int64(time.Second)) {
		o.dropped.Add(1)
		return 0, false
	}
	return o.dropped.Swap(0), true
}

// limitedLines lets one log line a second pass of each kind, of which there have
// to be few. The zero value is ready.
type limitedLines struct{ kinds sync.Map } // of *onceASecond, by name

func (l *limitedLines) pass(kind string) (dropped int64, ok bool) {
	once, found := l.kinds.Load(kind)
	if !found {
		once, _ = l.kinds.LoadOrStore(kind, new(onceASecond))
	}
	return once.(*onceASecond).pass()
}
