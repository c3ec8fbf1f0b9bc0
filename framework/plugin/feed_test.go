// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
)

func TestFollowerIsToldOfEachNewerGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(keymanager.Change{Generation: 5, Cause: "start"})
		ctx, stop := context.WithCancel(t.Context())
		var got []keymanager.Change
		done := make(chan error)
		go func() {
			done <- f.follow(ctx, func(c keymanager.Change) error {
				got = append(got, c)
				return nil
			})
		}()
		synctest.Wait()
		for _, c := range []keymanager.Change{
			{Generation: 5, NamesKnown: true, Names: []string{"a"}}, // the same, with its names
			{Generation: 5, NamesKnown: true, Names: []string{"b"}}, // nothing new
			{Generation: 4}, // late
			{Generation: 7, Cause: "file changed"},
			{Generation: 7, Cause: "reload"},
		} {
			f.publish(c)
			synctest.Wait()
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("follow ended with %v", err)
		}
		want := []keymanager.Change{
			{Generation: 5, Cause: "start"},
			{Generation: 5, NamesKnown: true, Names: []string{"a"}},
			{Generation: 7, Cause: "file changed"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSlowFollowerIsToldOfTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(keymanager.Change{Generation: 1})
		goOn := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		var got []uint64
		done := make(chan error)
		go func() {
			done <- f.follow(ctx, func(c keymanager.Change) error {
				got = append(got, c.Generation)
				<-goOn
				return nil
			})
		}()
		synctest.Wait()
		f.publish(keymanager.Change{Generation: 2})
		f.publish(keymanager.Change{Generation: 3})
		close(goOn)
		synctest.Wait()
		stop()
		<-done
		if diff := cmp.Diff([]uint64{1, 3}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFollowEnds(t *testing.T) {
	broken, refused := errors.New("broken"), errors.New("refused")
	told := func(keymanager.Change) error { return nil }
	tests := []struct {
		name string
		told func(keymanager.Change) error
		end  func(*feed)
		want error
	}{
		{"unwatched", told, func(f *feed) { f.setBroken(broken) }, broken},
		{"follower-fails", func(c keymanager.Change) error {
			if c.Generation > 1 {
				return refused
			}
			return nil
		}, func(f *feed) { f.publish(keymanager.Change{Generation: 2}) }, refused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFeed(keymanager.Change{Generation: 1})
				done := make(chan error)
				go func() { done <- f.follow(t.Context(), tt.told) }()
				synctest.Wait()
				tt.end(f)
				if err := <-done; !errors.Is(err, tt.want) {
					t.Errorf("follow ended with %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestFailureIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(keymanager.Change{Generation: 5})
		ctx, stop := context.WithCancel(t.Context())
		var got []keymanager.Change
		done := make(chan error)
		go func() {
			done <- f.follow(ctx, func(c keymanager.Change) error {
				got = append(got, c)
				return nil
			})
		}()
		for _, step := range []func(){
			func() {},
			func() { f.publish(keymanager.Change{Generation: 5, NamesKnown: true, Failed: "torn"}) },
			func() { f.publish(keymanager.Change{Generation: 5, NamesKnown: true, Failed: "torn"}) },
			func() { f.raise(5, "reload") },
			func() { f.raise(6, "reload") }, // which says nothing of what failed
			func() { f.publish(keymanager.Change{Generation: 6, NamesKnown: true}) },
		} {
			step()
			synctest.Wait()
		}
		stop()
		<-done
		want := []keymanager.Change{
			{Generation: 5},
			{Generation: 5, NamesKnown: true, Failed: "torn"},
			{Generation: 6, Cause: "reload", Failed: "torn"},
			{Generation: 6, NamesKnown: true},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
