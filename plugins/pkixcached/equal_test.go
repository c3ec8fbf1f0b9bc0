// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package pkixcached_test

import (
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/equaltest"
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// FuzzAnswersAsPkix drives pkix and pkixcached side by side. At each step both
// give the same entry or the same error.
func FuzzAnswersAsPkix(f *testing.F) {
	p := equaltest.NewPool(f)
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		p.Drive(t, seed, 40, func(env keymanager.Env) (one, two equaltest.Side) {
			return side(t, pkix.Tier(), env), side(t, pkixcached.Tier(), env)
		})
	})
}

func side(t *testing.T, tier keymanager.Tier, env keymanager.Env) equaltest.Side {
	t.Helper()
	m, err := tier.Open(t.Context(), env)
	if err != nil {
		t.Fatalf("open %s: %v", tier.Name, err)
	}
	return equaltest.Side{
		Name:   tier.Name,
		Select: func(h *keymanager.Hello) (*keymanager.Credential, error) { return m.Select(t.Context(), h) },
		Reload: func() error { return m.(keymanager.Reloader).Reload(t.Context()) },
	}
}
