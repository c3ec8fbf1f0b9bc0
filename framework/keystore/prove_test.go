// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestEachEntryOnce: all entries, each once, by no more than all CPUs but one.
func TestEachEntryOnce(t *testing.T) {
	entries := make([]*Entry, 500)
	for i := range entries {
		entries[i] = &Entry{}
	}
	var now, most, all atomic.Int64
	must(t, each(t.Context(), entries, func(e *Entry) {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		e.Usable = !e.Usable
		all.Add(1)
		runtime.Gosched()
		now.Add(-1)
	}))
	for i, e := range entries {
		if !e.Usable {
			t.Fatalf("entry %d was not done once", i)
		}
	}
	if limit := int64(max(1, runtime.GOMAXPROCS(0)-1)); most.Load() > limit || all.Load() != 500 {
		t.Errorf("%d at once, limit %d; %d in all", most.Load(), limit, all.Load())
	}
}

// TestProvingEndsWithItsContext: no verdict is recorded that is none.
func TestProvingEndsWithItsContext(t *testing.T) {
	s := newShop(t)
	var entries []testca.StoreEntry
	for i := range 20 {
		entries = append(entries, s.entry(fmt.Sprint(i)))
	}
	s.write(entries...)
	store, err := Open(t.Context(), s.source(), Limits{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	err = store.Prove(ctx, ProveOptions{Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	for _, e := range store.Entries {
		if e.Broken {
			t.Errorf("entry %q is called broken: %s", e.Alias, e.Reason)
		}
	}
}

// TestUnchangedKeyIsNotProvenTwice: a key that lies in the new content as it did
// in the old is the same key, as long as the passwords are the same.
func TestUnchangedKeyIsNotProvenTwice(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("keep=%v", keep), func(t *testing.T) {
			dir := t.TempDir()
			root := testca.NewRoot(t, testca.Spec{Name: "root"})
			part := func(name, pass string) string {
				c := root.Issue(t, testca.Spec{Name: name, DNS: []string{name}})
				plain, sealed := filepath.Join(dir, name+".plain"), filepath.Join(dir, name+".key")
				writeFile(t, plain, string(c.KeyPEM()))
				runTool(t, openssl, "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-iter", "2048", "-in", plain, "-out", sealed, "-passout", "pass:"+pass)
				return string(c.CertPEM()) + readFileString(t, sealed)
			}
			store, pass := filepath.Join(dir, "store.pem"), filepath.Join(dir, "pass")
			first, second := part("first", "one"), part("second", "one")
			writeFile(t, store, first)
			writeFile(t, pass, "one")
			src := keymanager.Source{Paths: []string{store}, Store: keymanager.PasswordRef{File: pass}}
			opt := ViewOptions{KeepKeys: keep}
			p, err := openPlace(t.Context(), 0, src, keymanager.Options{}, opt)
			must(t, err)
			before := p.store.Entries[0]

			writeFile(t, store, second+first)
			s, err := p.prove(t.Context(), find(src), keymanager.Options{}, opt)
			must(t, err)
			after := s.Entries[1]
			if keep && after.kept != before.kept {
				t.Error("the key was decrypted again")
			}
			if !keep && (after.proven == nil || after.proven == before.proven) {
				t.Error("the password is not its own: one of the views could not sign when the other's is wiped")
			}
			for _, e := range entriesOf([]*Store{s, p.store}, keep) {
				sign(t, e.Key)
			}

			writeFile(t, pass, "two") // a new start would refuse this
			if _, err := p.prove(t.Context(), find(src), keymanager.Options{}, opt); err == nil {
				t.Error("a key is taken for proven under a password that is not its")
			}
		})
	}
}
