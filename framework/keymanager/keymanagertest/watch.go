// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// watch holds what Watcher promises: a new generation is told of, with its own
// names or none, and Watch returns nil when ctx has ended.
func (s suite) watch(t *testing.T) {
	ca := newCA(t)
	st := newStore(t, ca.entry("old", named("old.test")))
	km := s.open(t, keymanager.Options{}, st.source())
	w, ok := km.(keymanager.Watcher)
	if !ok {
		t.Skipf("%T does not watch", km)
	}
	r := reloader(t, km)
	var told atomic.Pointer[keymanager.Change]
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Watch(ctx, func(c keymanager.Change) { told.Store(&c) }) }()
	first := mustSelect(t, km, hello("old.test")).Generation

	st.write(t, ca.entry("new", named("new.test")))
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := mustSelect(t, km, hello("new.test")).Generation
	if second <= first {
		t.Errorf("generation %d after new content, %d before", second, first)
	}
	c := await(t, &told, func(c *keymanager.Change) bool { return c.Generation == second })
	carries := slices.Contains(c.Names, "new.test")
	if c.NamesKnown && carries == s.Caps.Unchecked || !c.NamesKnown && carries || slices.Contains(c.Names, "old.test") {
		t.Errorf("told of names %q", c.Names)
	}

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("watch ended with %v", err)
	}
}

// await waits until what was told last is what is waited for.
func await(t *testing.T, told *atomic.Pointer[keymanager.Change], want func(*keymanager.Change) bool) *keymanager.Change {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if c := told.Load(); c != nil && want(c) {
			return c
		}
	}
	t.Fatalf("not told in time; last was %+v", told.Load())
	return nil
}
