// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"sync/atomic"
	"time"
)

// waiting is the time of a request from its end to the beginning of its answer, of
// which the server of its connection is told. An answer may begin before the
// request ends, which is in another goroutine then.
type waiting struct {
	ctx   context.Context
	most  time.Duration
	phase atomic.Int32 // 0, then begun, then over; or over at once
}

const (
	begun = 1
	over  = 2
)

// begin tells that the backend is waited for, the first time and unless it has
// answered.
func (w *waiting) begin() {
	if !w.phase.CompareAndSwap(0, begun) {
		return
	}
	if info, ok := InfoFrom(w.ctx); ok && info.Awaits != nil {
		info.Awaits(w.most)
	}
}

// end tells that it isn't any more, if it was.
func (w *waiting) end() {
	if w.phase.Swap(over) != begun {
		return
	}
	if info, ok := InfoFrom(w.ctx); ok && info.Answered != nil {
		info.Answered()
	}
}
