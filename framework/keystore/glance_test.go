// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// TestGlanceSeesTheNext: whoever glances after a change has what it brought, as
// often as it changes, here without any event.
func TestGlanceSeesTheNext(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	silent := newSilent(t, s.encode(s.entry("0")))
	s.path = silent.file
	f := follow(t, never, s.source())
	for _, alias := range []string{"1", "2", "3"} {
		silent.swap(s.encode(s.entry(alias)))
		until(t, "what glances see", func() bool {
			f.Glance(t.Context())
			return cmp.Equal(f.Current(), []string{alias})
		})
	}
}

// TestGlanceWaitsForNoLongLook: while something new is proven, handshakes get
// what is in use.
func TestGlanceWaitsForNoLongLook(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.write(s.entry("0"))
	proving, proven := make(chan struct{}), make(chan struct{})
	e := env(s.source())
	e.Options.Poll = never
	v, err := OpenViews(t.Context(), e, ViewOptions{Follow: true}, func(v *View) (uint64, error) {
		if v.Generation > 7 {
			close(proving)
			<-proven
		}
		return v.Generation, nil
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- v.Watch(ctx, func(keymanager.Change) {}) }()
	until(t, "the first look", func() bool { l := v.sight.last.Load(); return l != nil && isClosed(l.done) })
	s.write(s.entry("1"))
	<-proving
	s.write(s.entry("2")) // nor for the one after it
	for range 100 {
		v.Glance(t.Context())
	}
	if v.Current() != 7 {
		t.Error("something is in use before it is proven")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	v.Glance(gone)
	close(proven)
	until(t, "the new view", func() bool { return v.Current() > 7 })
	cancel()
	must(t, <-ended)
}

// TestGlanceWithoutWatch looks at nothing and waits for nobody.
func TestGlanceWithoutWatch(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("0"))
	v := mustOpenNames(t, env(s.source()), ViewOptions{Follow: true})
	s.write(s.entry("1"))
	v.Glance(t.Context())
	if !cmp.Equal(v.Current(), []string{"0"}) {
		t.Errorf("serves %q without being watched", v.Current())
	}
}

func BenchmarkGlance(b *testing.B) {
	s := newShop(b)
	s.write(s.entry("0"))
	f := follow(b, never, s.source())
	for b.Loop() {
		f.Glance(b.Context())
	}
}
