// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// ProveOptions say how Prove goes about it. The zero value is useful.
type ProveOptions struct {
	// Keep keeps the decrypted keys of usable entries for Entry.Signer. Where
	// they are not kept, what is kept is the password that opened the key.
	Keep bool
	// Load makes the keys that are kept; nil: Go's own, for Entry.Signer.
	Load LoadFunc
	// Progress is called after each key, where set, one call at a time.
	Progress func(done, total int)

	// known is a proven reading of the same keystore under the same passwords
	// and with the same Keep and Load, or nil: what is encrypted as it was there is the
	// same key and needs no second derivation.
	known *Store
}

// Prove decrypts each key once, pairs it with its certificate by public key,
// records the verdict in the entry, and wipes the key; Warnings then go by what
// is proven. It works on several keys at once and leaves one CPU to others. It
// returns an error only where ctx ends; a bad entry is a verdict. It must have
// returned before the Store is shared.
func (s *Store) Prove(ctx context.Context, opt ProveOptions) error {
	var keys []*Entry
	for _, e := range s.Entries {
		if e.Kind == keymanager.KindKey {
			keys = append(keys, e)
		}
	}
	known := opt.known.byCiphertext()
	var mu sync.Mutex // guards done
	done := 0
	err := each(ctx, keys, func(e *Entry) {
		e.verdict(ctx, opt, known)
		mu.Lock()
		defer mu.Unlock()
		if done++; opt.Progress != nil {
			opt.Progress(done, len(keys))
		}
	})
	if err != nil {
		return err
	}
	sharePasswords(keys)
	s.noteUnrelated()
	return nil
}

// each calls do for every entry, on all CPUs but one, and yields after each, so
// that handshakes go on meanwhile. It returns an error only where ctx ends.
func each(ctx context.Context, entries []*Entry, do func(*Entry)) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(max(1, runtime.GOMAXPROCS(0)-1), len(entries)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(entries) {
					return
				}
				do(entries[i])
				runtime.Gosched()
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// sharePasswords keeps equal passwords once: most keys of a store have the same.
func sharePasswords(keys []*Entry) {
	var last *password
	for _, e := range keys {
		if last != nil && e.proven != nil && last.equal(*e.proven) {
			e.proven.wipe()
			e.proven = last
		}
		last = e.proven
	}
}

// byCiphertext returns the usable entries by what their keys are in the store.
func (s *Store) byCiphertext() map[[sha256.Size]byte]*Entry {
	if s == nil {
		return nil
	}
	entries := make(map[[sha256.Size]byte]*Entry)
	for _, e := range s.Entries {
		if k, ok := e.key.(encryptedKey); ok && e.Usable {
			entries[k.digest] = e
		}
	}
	return entries
}

// verdict proves e, or records why it can't be.
func (e *Entry) verdict(ctx context.Context, opt ProveOptions, known map[[sha256.Size]byte]*Entry) {
	if e.Err != nil {
		return
	}
	var err error
	if k, ok := e.key.(encryptedKey); ok && known[k.digest] != nil {
		err = e.proveLike(known[k.digest])
	} else {
		err = e.prove(ctx, opt)
	}
	if err != nil && ctx.Err() == nil {
		e.fail(e.store.advise(err))
	}
}

// proveLike is prove for an entry whose key is that of one that was proven. The
// other's key and password stay its own: it may be in use.
func (e *Entry) proveLike(known *Entry) error {
	e.KeyType = publicKeyType(known.public)
	leaf, err := e.pair(known.public)
	if err != nil {
		return err
	}
	e.public, e.Usable, e.kept = leaf.parsed.PublicKey, true, known.kept
	if known.proven != nil {
		e.proven = known.proven.clone()
	}
	return nil
}

// prove returns nil and makes e usable, or returns the reason why it is not.
func (e *Entry) prove(ctx context.Context, opt ProveOptions) error {
	der, pw, err := e.unseal(ctx)
	if err != nil {
		return err
	}
	key, err := opt.load(der)
	clear(der)
	var kind *KeyTypeError
	if errors.As(err, &kind) && e.KeyType == "" {
		e.KeyType = kind.Type
	}
	if err != nil {
		return err
	}
	e.KeyType = publicKeyType(key.Public())
	leaf, err := e.pair(key.Public())
	if err != nil {
		key.wipe()
		return err
	}
	// The certificate's copy: the key's would keep the private key alive.
	e.public, e.Usable = leaf.parsed.PublicKey, true
	if opt.Keep {
		e.kept = key
		if pw != nil {
			pw.wipe()
		}
		return nil
	}
	key.wipe()
	e.proven = pw
	return nil
}

// pair finds the certificate of the public key and builds its chain: the one
// that claims to be it, else whichever carries the key. Attributes lie; keys
// don't.
func (e *Entry) pair(public crypto.PublicKey) (*certificate, error) {
	if c := e.claimed; c != nil && c.parsed != nil && samePublic(public, c.parsed.PublicKey) {
		return c, nil
	}
	var found *certificate
	for _, c := range e.pool {
		if c.parsed == nil || !samePublic(public, c.parsed.PublicKey) {
			continue
		}
		if found == nil || c.parsed.NotAfter.After(found.parsed.NotAfter) {
			found = c
		}
	}
	if found == nil {
		return nil, e.unpaired()
	}
	e.setChain(found)
	if e.claimed != nil {
		e.Notes = append(e.Notes, "the attributes of the key name another certificate; the one with its public key is used")
	}
	return found, nil
}

func (e *Entry) unpaired() error {
	switch {
	case e.claimed == nil:
		return ErrNoCertificate
	case e.claimed.err != nil:
		return e.claimed.err
	}
	return &MismatchError{Subject: e.claimed.title()}
}
