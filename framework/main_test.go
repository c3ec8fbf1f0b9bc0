// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

// Tiers that the tests start as children: one that works, and two that stand
// for programs that forget to call plugin.Main, a plain one and a test.
const (
	tierPEM        = "pem"
	tierForgets    = "forgets"
	tierForgetTest = "forgets-in-test"
)

func TestMain(m *testing.M) {
	switch childOf() {
	case tierForgets:
		_, err := Open(context.Background(), forgetful(tierForgets))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case tierForgetTest:
		flag.Parse()
		_ = flag.Set("test.run", "^TestForgottenMain$")
	default:
		plugin.Main(testTiers()...)
	}
	if spec := os.Getenv(frontEnv); spec != "" {
		if err := runFront(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// testTiers are those that the test binary embeds.
func testTiers() []keymanager.Tier { return []keymanager.Tier{pemTier()} }

// childOf returns the tier that this process was started to serve.
func childOf() string { return os.Getenv("TLSD_KEYMANAGER_CHILD") }

// pemTier serves one PEM pair, and nothing to a peer that can't use it.
func pemTier() keymanager.Tier {
	return keymanager.Tier{Name: tierPEM, Open: func(_ context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
		paths := env.Builders[0].Paths
		pair, err := tls.LoadX509KeyPair(paths[0], paths[1])
		if err != nil {
			return nil, err
		}
		return pemPair{env.FirstGeneration, pair}, nil
	}}
}

type pemPair struct {
	generation uint64
	pair       tls.Certificate
}

func (p pemPair) Select(_ context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	for _, s := range h.Schemes {
		if fits(s, p.pair.Leaf.PublicKey, h.Version) {
			return &keymanager.Credential{
				Alias: "1", Generation: p.generation,
				Chain: p.pair.Certificate, Leaf: p.pair.Leaf, Key: keymanager.FromSigner(p.pair.PrivateKey.(crypto.Signer)),
			}, nil
		}
	}
	return nil, keymanager.ErrNoCredential
}
