// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"
)

func TestBackoffGrowsAndForgets(t *testing.T) {
	var b backoff
	for i, least := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second, 1600 * time.Millisecond} {
		if d := b.next(); d < least || d > least+least/4 {
			t.Errorf("pause %d is %v, want %v and up to a quarter more", i, d, least)
		}
	}
	for range 20 {
		b.next()
	}
	if d := b.next(); d < longPause || d > longPause+longPause/4 {
		t.Errorf("long pause %v", d)
	}
	b.ended(time.Second)
	if d := b.next(); d < longPause {
		t.Errorf("forgot after a short life: %v", d)
	}
	b.ended(stableFor)
	if d := b.next(); d > time.Second {
		t.Errorf("did not forget after a long life: %v", d)
	}
}
