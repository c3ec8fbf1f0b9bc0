// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// neverLists is a key manager that doesn't answer List.
type neverLists struct{ *fake }

func (neverLists) List(ctx context.Context) ([]keymanager.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What is told of the start only must not keep it waiting.
func TestStartDoesNotHangOnList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(neverLists{&fake{}}, "fake", &Config{})
		defer k.Close()
		began := time.Now()
		k.announce(context.Background(), []keymanager.Source{{Paths: []string{"/a.p12"}}}, zap.NewNop())
		if waited := time.Since(began); waited > defaultSignTimeout {
			t.Errorf("waited %v", waited)
		}
	})
}
