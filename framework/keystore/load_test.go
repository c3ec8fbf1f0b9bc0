// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// vault loads keys as a device would, and remembers what it was given.
type vault struct {
	mu    sync.Mutex
	given [][]byte // as handed over, not a copy
	err   error
}

type vaultKey struct{ keymanager.Key }

func (v *vault) load(der []byte) (keymanager.Key, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.given = append(v.given, der)
	if v.err != nil {
		return nil, v.err
	}
	signer, err := parseKey(der)
	if err != nil {
		return nil, err
	}
	return &vaultKey{keymanager.FromSigner(signer)}, nil
}

// TestLoadMakesTheKeysOfAView: they are what it returned, what it was given is
// wiped, and a reload asks only for keys that are new.
func TestLoadMakesTheKeysOfAView(t *testing.T) {
	s := newShop(t)
	a, b := s.entry("a"), s.entry("b")
	s.write(a, b)
	var v vault
	views := mustOpenNames(t, env(s.source()), ViewOptions{KeepKeys: true, Load: v.load})
	for _, e := range views.View().Entries {
		if _, ok := e.Key.(*vaultKey); !ok {
			t.Fatalf("key of %q is a %T", e.Alias, e.Key)
		}
		sign(t, e.Key)
	}
	first := views.View().Entries[0].Key

	s.write(a, s.entry("c"))
	must(t, views.Reload(t.Context()))
	sign(t, first)
	if len(v.given) < 3 {
		t.Errorf("%d keys were loaded", len(v.given))
	}
	for i, der := range v.given {
		if len(der) == 0 || slices.ContainsFunc(der, func(b byte) bool { return b != 0 }) {
			t.Errorf("key %d is not wiped", i)
		}
	}
}

// TestLoadIsAskedForUsableKeysOnly: what TLS can't use is sorted out before, and
// what Load returns is held against the certificate.
func TestLoadIsAskedForUsableKeysOnly(t *testing.T) {
	s := newShop(t)
	small := testca.StoreEntry{Alias: "p224", Cert: s.root.Issue(t, testca.Spec{Name: "p224", Key: testca.P224})}
	s.write(s.entry("good"), s.stray("stray"), small)
	var v vault
	views := mustOpenNames(t, env(s.source()), ViewOptions{KeepKeys: true, Load: v.load})
	if got := usableAliases(views.View()); !slices.Equal(got, []string{"good"}) {
		t.Errorf("usable are %q", got)
	}
	if len(v.given) != 2 {
		t.Errorf("%d keys were loaded, want the good one and the stray", len(v.given))
	}
}

// TestLoadFailureIsTheEntrys: one bad key doesn't hide the others, and the reason
// is in the error.
func TestLoadFailureIsTheEntrys(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	full := errors.New("the device is full")
	v := vault{err: full}
	var damaged *DamagedError
	if _, err := openNames(t, env(s.source()), ViewOptions{KeepKeys: true, Load: v.load}); !errors.Is(err, full) || !errors.As(err, &damaged) {
		t.Errorf("got %v", err)
	}
}
