// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package keymanagertest is the suite that every tier passes, wherever it runs:
// called directly, as a child process of the program that embeds it, or as an
// executable of its own. It knows no transport: the caller opens the tier.
//
//	func TestTier(t *testing.T) {
//		keymanagertest.Run(t, keymanagertest.Config{Open: keymanagertest.Direct(mytier.Tier())})
//	}
//
// It makes keystores as people have them (PKCS#12, several entries, several
// files), asks for credentials, has handshake messages signed and others
// refused, and changes the files. For a key manager whose keys are no keystore
// files it is of no use.
package keymanagertest

import (
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// OpenFunc opens the tier under test with what of env its transport can carry:
// Builders and Options at least. It is called often, and returns the error that
// the tier's opening does. What it starts ends with t, by t.Cleanup.
type OpenFunc func(t testing.TB, env keymanager.Env) (keymanager.KeyManager, error)

// Config says what is tested.
type Config struct {
	Open OpenFunc
	Caps Caps
}

// Caps say in what a tier differs from pkixcached, which has the zero value. What a
// key manager implements beside Select is found by type assertion.
type Caps struct {
	Unchecked bool // looks at no certificate when it chooses, as sunx509
	Strict    bool // an entry that should work and doesn't fails the opening, as sunx509
	NoReuse   bool // its answers hold for one handshake only, as pkix
}

// Direct returns an OpenFunc that opens the tier in this process.
func Direct(tier keymanager.Tier) OpenFunc {
	return func(t testing.TB, env keymanager.Env) (keymanager.KeyManager, error) {
		return tier.Open(t.Context(), env)
	}
}

// Run runs the suite as subtests of t.
func Run(t *testing.T, cfg Config) {
	s := suite{cfg}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"choice", s.choice},
		{"explain", s.explain},
		{"credential_is_whole", s.credential},
		{"reuse", s.reuse},
		{"signatures_verify", s.signatures},
		{"refuses_what_is_no_handshake", s.refusals},
		{"opening_fails", s.openErrors},
		{"broken_entry", s.brokenEntry},
		{"list", s.list},
		{"reload", s.reload},
		{"watch", s.watch},
		{"credential_outlives_reload", s.credentialOutlivesReload},
		{"concurrent_use", s.concurrentUse},
		{"cancelled_context", s.cancelledContext},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct{ Config }

// open opens the tier over keystores that must open.
func (s suite) open(t *testing.T, opt keymanager.Options, sources ...keymanager.Source) keymanager.KeyManager {
	t.Helper()
	km, err := s.Open(t, keymanager.Env{Builders: sources, Options: opt, FirstGeneration: 1})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return km
}
