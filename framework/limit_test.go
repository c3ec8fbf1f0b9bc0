// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"
	"testing/synctest"
	"time"
)

// One line a second passes, and the next one counts the others.
func TestOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o onceASecond
		for i, want := range []struct {
			wait    time.Duration
			ok      bool
			dropped int64
		}{{0, true, 0}, {0, false, 0}, {999 * time.Millisecond, false, 0}, {time.Millisecond, true, 2}, {time.Hour, true, 0}} {
			time.Sleep(want.wait)
			if dropped, ok := o.pass(); ok != want.ok || dropped != want.dropped {
				t.Errorf("line %d: passes %v, %d before it, want %v, %d", i, ok, dropped, want.ok, want.dropped)
			}
		}
	})
}

// Clocks are set back; lines pass all the same, because the reading that is kept is
// of a clock that isn't. No test can set it, but the reading shows.
func TestOnceASecondIsMonotonic(t *testing.T) {
	t.Parallel()
	var o onceASecond
	o.pass()
	if last := *o.last.Load(); last == last.Round(0) { // Equal tells no such difference
		t.Errorf("%v has no monotonic reading", last)
	}
}
