// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func reloader(t *testing.T, km keymanager.KeyManager) keymanager.Reloader {
	t.Helper()
	r, ok := km.(keymanager.Reloader)
	if !ok {
		t.Skipf("%T does not reload", km)
	}
	return r
}

func mustSelect(t testing.TB, km keymanager.KeyManager, h *keymanager.Hello) *keymanager.Credential {
	t.Helper()
	cred, err := km.Select(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return cred
}

// reload holds what Reloader promises: the same content keeps the generation,
// new content gets a new one, and on error the old state stays.
func (s suite) reload(t *testing.T) {
	ca := newCA(t)
	st := newStore(t, ca.entry("old", named("w.test")))
	other := newStore(t, ca.entry("other", named("other.test")))
	km := s.open(t, keymanager.Options{}, st.source(), other.source())
	r := reloader(t, km)
	first := mustSelect(t, km, hello("w.test"))
	expect := func(what, alias string, generation func(now uint64) bool) *keymanager.Credential {
		t.Helper()
		cred := mustSelect(t, km, hello("w.test"))
		if cred.Alias != alias || !generation(cred.Generation) {
			t.Errorf("%s: alias %q, generation %d; it was %d", what, cred.Alias, cred.Generation, first.Generation)
		}
		if err := trial(t, cred); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return cred
	}
	same := func(g uint64) bool { return g == first.Generation }
	newer := func(g uint64) bool { return g > first.Generation }

	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("nothing changed", "old", same)

	for what, content := range map[string][]byte{"garbage": []byte("no keystore"), "empty file": {}} {
		if err := os.WriteFile(st.path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.Reload(t.Context()); err == nil {
			t.Errorf("%s: the reload succeeds", what)
		}
		expect(what, "old", same)
	}
	if err := os.Remove(st.path); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context()); err == nil {
		t.Error("file gone: the reload succeeds")
	}
	expect("file gone", "old", same)

	st.write(t, ca.entry("new", named("w.test")))
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := expect("new content", "new", newer)
	if second.Builder != 0 {
		t.Errorf("builder %d", second.Builder)
	}
}

// credentialOutlivesReload lets a handshake that selected before a reload sign
// after it, with the key that its chain is for.
func (s suite) credentialOutlivesReload(t *testing.T) {
	ca := newCA(t)
	st := newStore(t, ca.entry("a", named("w.test")))
	km := s.open(t, keymanager.Options{}, st.source())
	r := reloader(t, km)
	before := mustSelect(t, km, hello("w.test"))
	st.write(t, ca.entry("a", named("w.test")))
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := mustSelect(t, km, hello("w.test"))
	if samePublicKey(before.Leaf.PublicKey, after.Leaf.PublicKey) {
		t.Fatal("the reload changed nothing")
	}
	for name, cred := range map[string]*keymanager.Credential{"before": before, "after": after} {
		if err := trial(t, cred); err != nil {
			t.Errorf("credential of %s: %v", name, err)
		}
	}
}

// concurrentUse selects, signs, lists and reloads at the same time, while the
// keystore changes. Every signature must be one by the key of its own chain.
func (s suite) concurrentUse(t *testing.T) {
	const workers, rounds, changes = 4, 25, 6
	ca := newCA(t)
	versions := [][]testca.StoreEntry{
		{ca.entry("a", named("a.test")), ca.entry("b", named("b.test"))},
		{ca.entry("b", named("b.test")), ca.entry("a", named("a.test"))},
	}
	st := newStore(t, versions[0]...)
	km := s.open(t, keymanager.Options{}, st.source())

	errs := make(chan error, workers*rounds+changes)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range rounds {
				errs <- roundTrip(t, km, []string{"a", "b"}[i%2], s.Caps.Unchecked)
			}
		})
	}
	if r, ok := km.(keymanager.Reloader); ok {
		wg.Go(func() {
			for i := range changes {
				st.write(t, versions[(i+1)%2]...)
				errs <- r.Reload(t.Context())
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// roundTrip is one handshake's worth of calls, and a list.
func roundTrip(t *testing.T, km keymanager.KeyManager, name string, unchecked bool) error {
	cred, err := km.Select(t.Context(), hello(name+".test"))
	if err != nil {
		return err
	}
	if !unchecked && !slices.Contains(cred.Leaf.DNSNames, name+".test") {
		return fmt.Errorf("a hello for %s.test gets a certificate for %q", name, cred.Leaf.DNSNames)
	}
	if !slices.Contains(cred.Leaf.DNSNames, cred.Alias+".test") {
		return fmt.Errorf("alias %q has the chain of %q", cred.Alias, cred.Leaf.DNSNames)
	}
	if err := trial(t, cred); err != nil {
		return err
	}
	if l, ok := km.(keymanager.Lister); ok {
		entries, err := l.List(t.Context())
		if err != nil {
			return err
		}
		if len(entries) != 2 {
			return fmt.Errorf("%d entries are listed, want 2", len(entries))
		}
	}
	return nil
}

// cancelledContext expects calls whose handshake has ended to end too, and to
// do no harm.
func (s suite) cancelledContext(t *testing.T) {
	ca := newCA(t)
	km := s.open(t, keymanager.Options{}, newStore(t, ca.entry("a", named("a.test"))).source())
	cred := mustSelect(t, km, hello("a.test"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cancel()
	if _, err := km.Select(ctx, hello("a.test")); err == nil || errors.Is(err, keymanager.ErrNoCredential) {
		t.Errorf("select = %v, want an error that is no answer", err)
	}
	_, err := cred.Key.Sign(ctx, &keymanager.SignRequest{
		Scheme: schemesOf(testca.P256)[0].id, Purpose: keymanager.ServerTLS13, Message: certificateVerify("server", 32),
	})
	if err == nil {
		t.Error("sign succeeds although its context has ended")
	}
	if err := trial(t, cred); err != nil {
		t.Errorf("after that: %v", err)
	}
}
