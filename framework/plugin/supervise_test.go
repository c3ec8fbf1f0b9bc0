// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"
)

func TestBackoffGrowsAndForgets(t *testing.T) {
	now := time.Now()
	b := backoff{last: now}
	next := func(lived time.Duration, ready bool) time.Duration {
		now = now.Add(lived)
		pause := b.next(now, ready)
		now = now.Add(pause)
		return lived + pause
	}
	for i, least := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second, 1600 * time.Millisecond} {
		if d := next(50*time.Millisecond, false); d < least || d > least+least/4 {
			t.Errorf("gap %d is %v, want %v and up to a quarter more", i, d, least)
		}
	}
	for range 20 {
		next(0, false)
	}
	if d := next(0, false); d < failedGap || d > failedGap+failedGap/4 {
		t.Errorf("long gap %v", d)
	}
	if d := next(40*time.Second, false); d != 40*time.Second {
		t.Errorf("a process that had lived for 40 s was replaced %v after its start", d)
	}
	b.ended(time.Second)
	if d := next(0, false); d < failedGap {
		t.Errorf("forgot after a short life: %v", d)
	}
	if d := next(0, true); d < longGap || d > longGap+longGap/4 {
		t.Errorf("gap %v after one that was ready", d)
	}
	b.ended(stableFor)
	if d := next(0, false); d > time.Second {
		t.Errorf("did not forget after a long life: %v", d)
	}
}

// However soon a process dies, there is at most one start a second after the
// third.
func TestStartsOfACrashLoopAreFew(t *testing.T) {
	for _, lived := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second} {
		began := time.Now()
		b := backoff{last: began}
		starts := 0
		for now := began; now.Sub(began) < 10*time.Second; starts++ {
			now = now.Add(lived)
			now = now.Add(b.next(now, lived > 0))
		}
		if starts > 12 {
			t.Errorf("%d starts in 10 s of a process that lives for %v", starts, lived)
		}
	}
}
