// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto"
	"errors"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// ProveOptions say how Prove goes about it. The zero value is useful.
type ProveOptions struct {
	// Keep keeps the decrypted keys of usable entries for Entry.Signer. Where
	// they are not kept, what is kept is the password that opened the key.
	Keep bool
	// Progress is called after each key, where set.
	Progress func(done, total int)
}

// Prove decrypts each key once, pairs it with its certificate by public key,
// records the verdict in the entry, and wipes the key; Warnings then go by what
// is proven. It returns an error only
// where ctx ends; a bad entry is a verdict. It must have returned before the
// Store is shared.
func (s *Store) Prove(ctx context.Context, opt ProveOptions) error {
	var keys []*Entry
	for _, e := range s.Entries {
		if e.Kind == keymanager.KindKey {
			keys = append(keys, e)
		}
	}
	var last *password
	for i, e := range keys {
		if e.Err == nil {
			if err := e.prove(ctx, opt.Keep); err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				e.fail(s.advise(err))
			}
		}
		// Most keys of a store share one password: keep it once.
		if last != nil && e.proven != nil && last.equal(*e.proven) {
			e.proven.wipe()
			e.proven = last
		}
		last = e.proven
		if opt.Progress != nil {
			opt.Progress(i+1, len(keys))
		}
	}
	s.noteUnrelated()
	return nil
}

// prove returns nil and makes e usable, or returns the reason why it is not.
func (e *Entry) prove(ctx context.Context, keep bool) error {
	der, pw, err := e.unseal(ctx)
	if err != nil {
		return err
	}
	signer, err := parseKey(der)
	clear(der)
	var kind *KeyTypeError
	if errors.As(err, &kind) && e.KeyType == "" {
		e.KeyType = kind.Type
	}
	if err != nil {
		return err
	}
	e.KeyType = publicKeyType(signer.Public())
	leaf, err := e.pair(signer.Public())
	if err != nil {
		Wipe(signer)
		return err
	}
	// The certificate's copy: the signer's would keep the private key alive.
	e.public, e.Usable = leaf.parsed.PublicKey, true
	if keep {
		e.kept = signer
		if pw != nil {
			pw.wipe()
		}
		return nil
	}
	Wipe(signer)
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
