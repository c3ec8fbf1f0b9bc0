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
	last    atomic.Pointer[time.Time] // that a line passed, by a clock that nobody sets; nil: never
	dropped atomic.Int64
}

// pass says whether a line may be written now, and how many were not since the
// last one.
func (o *onceASecond) pass() (dropped int64, ok bool) {
	if !o.due() {
		o.dropped.Add(1)
		return 0, false
	}
	return o.dropped.Swap(0), true
}

// due notes that a line passes, if one may and no other caller has just taken its
// place.
func (o *onceASecond) due() bool {
	last := o.last.Load()
	if last != nil && time.Since(*last) < time.Second {
		return false
	}
	now := time.Now()
	return o.last.CompareAndSwap(last, &now)
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
