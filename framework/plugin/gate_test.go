// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{slots: make(chan struct{}, 1)}
		if err := g.enter(waitAsLongAs(t.Context()), nil); err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 5 {
			go func() {
				if g.enter(waitAsLongAs(t.Context()), nil) == nil {
					order = append(order, i) // one at a time, by the gate
					g.leave()
				}
			}()
			synctest.Wait() // until it is in the queue
		}
		g.leave()
		synctest.Wait()
		if fmt.Sprint(order) != "[0 1 2 3 4]" {
			t.Errorf("order %v", order)
		}
	})
}

func TestGateTurnsAway(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name    string
		ctx     context.Context
		gone    chan struct{}
		waiting int64
		want    error
	}{
		{"one-too-many", t.Context(), nil, maxWaiting, ErrBusy},
		{"process-gone", t.Context(), gone, 0, ErrUnavailable},
		{"waited-too-long", ended, nil, 0, ErrUnavailable},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := &gate{slots: make(chan struct{})}
			g.waiting.Store(tc.waiting)
			if err := g.enter(waitAsLongAs(tc.ctx), tc.gone); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if n := g.waiting.Load(); n != tc.waiting {
				t.Errorf("%d are waiting, want %d", n, tc.waiting)
			}
		})
	}
}

// waitAsLongAs is for ever, as far as tests go.
func waitAsLongAs(ctx context.Context) *wait { return &wait{of: ctx, end: time.Now().Add(time.Hour)} }
