// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/equaltest"
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// FuzzFrontAnswersAsPkix drives pkix and pkixcached side by side, each through a
// front. What the front of pkixcached gives again, and pkix chooses anew each
// time, is the same entry at each step.
func FuzzFrontAnswersAsPkix(f *testing.F) {
	const given = 20 // seeds, of which is known that they try both ways
	p := equaltest.NewPool(f)
	for seed := range uint64(given) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		var asked, reused int
		count := Observer{Selection: func(again bool, _ error) {
			if again {
				reused++
			} else {
				asked++
			}
		}}
		p.Drive(t, seed, 60, func(env keymanager.Env) (one, two equaltest.Side) {
			return front(t, pkix.Tier(), env, Observer{}), front(t, pkixcached.Tier(), env, count)
		})
		if seed < given && (asked == 0 || reused == 0) {
			t.Errorf("pkixcached was asked %d times and %d answers were given again: not both are tried", asked, reused)
		}
	})
}

// front runs the tier in this process, behind a front that has its clock.
func front(t *testing.T, tier keymanager.Tier, env keymanager.Env, o Observer) equaltest.Side {
	t.Helper()
	m, err := plugin.InProcess(t.Context(), tier, plugin.Spec{Sources: env.Builders, Options: env.Options, Now: env.Now})
	if err != nil {
		t.Fatalf("open %s: %v", tier.Name, err)
	}
	k := newKeys(m, tier.Name, &Config{Observer: o})
	k.now = env.Now
	t.Cleanup(func() { _ = k.Close() })
	if !env.Options.JDKCompat {
		await(t, k)
	}
	return equaltest.Side{
		Name: tier.Name,
		Select: func(h *keymanager.Hello) (*keymanager.Credential, error) {
			found, err := k.answer(&handshake{ctx: t.Context()}, h)
			if err != nil {
				return nil, err
			}
			return found.cred, nil
		},
		Reload: func() error { return k.Reload(t.Context()) },
	}
}
