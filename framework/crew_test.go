// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestCrew runs so many functions at once, and then one after another.
func TestCrew(t *testing.T) {
	for name, tt := range map[string]struct{ atOnce, kept int }{
		"one":           {1, 1},
		"few":           {10, 10},
		"more_than_max": {maxIdle + 10, maxIdle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quit := make(chan struct{})
				c := newCrew(quit)
				var ran atomic.Int64
				release := make(chan struct{})
				for range tt.atOnce {
					c.Go(func() { <-release; ran.Add(1) })
				}
				close(release) // for those that wait for it, which nobody else can run
				c.Wait()
				synctest.Wait()
				for range 3 * maxIdle {
					c.Go(func() { ran.Add(1) })
					c.Wait()
					synctest.Wait()
				}
				if n := len(c.idle); n != tt.kept {
					t.Errorf("%d goroutines are kept, want %d", n, tt.kept)
				}
				if n := ran.Load(); n != int64(tt.atOnce+3*maxIdle) {
					t.Errorf("%d functions ran, want %d", n, tt.atOnce+3*maxIdle)
				}
				close(quit)
				c.End()
				if n := len(c.idle); n != 0 {
					t.Errorf("%d are idle after the end", n)
				}
			})
		})
	}
}
