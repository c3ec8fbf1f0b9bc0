// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Entry is one entry of a Store: a key with its chain, a trusted certificate or
// a secret. Its fields are the reader's until Prove has returned, and nobody's
// to change afterwards.
type Entry struct {
	Alias   string   // as stored; a number where it has no name
	Kind    string   // keymanager.KindKey, KindTrusted or KindSecret
	Chain   [][]byte // DER, leaf first; claimed until proven
	KeyType string   // "RSA-2048", "P-256", "Ed25519", …; by the claimed certificate until proven; empty: unknown
	Notes   []string // what an operator should know of the chain

	// The verdict, set by Prove. Usable is a key that decrypts, matches its
	// certificate and is of a kind that TLS can use here; whether its
	// certificate is valid or fit for anything is not looked at. Broken is a
	// key that should work and does not. An entry that is neither is of a kind
	// that TLS cannot use.
	Usable bool
	Broken bool
	Reason string // why not usable
	Err    error  // the same for programs: a type of this package

	store      *Store
	key        sealed
	pool       []*certificate // where its chain is found
	claimed    *certificate
	lone       *certificate // the leaf, where its issuer is not in the pool
	localKeyID []byte
	public     crypto.PublicKey // proven
	proven     *password        // opened the key; nil where the key is kept or not encrypted
	kept       *loaded          // decrypted and kept
}

func (r *reader) addKey(name string, key sealed, err error) *Entry {
	e := &Entry{Alias: name, Kind: keymanager.KindKey, store: r.Store, key: key}
	if err != nil {
		e.fail(r.advise(err))
	}
	r.Entries = append(r.Entries, e)
	return e
}

func (r *reader) addTrusted(name string, c *certificate) {
	e := &Entry{Alias: name, Kind: keymanager.KindTrusted, store: r.Store, Reason: "trusted certificate, not a key"}
	e.Chain = [][]byte{c.der}
	e.KeyType = c.keyType()
	r.Entries = append(r.Entries, e)
}

func (r *reader) addSecret(name string) {
	e := &Entry{Alias: name, Kind: keymanager.KindSecret, store: r.Store}
	e.fail(&KeyTypeError{Type: "secret key"})
	r.Entries = append(r.Entries, e)
}

// claim sets the certificate that claims to be the key's, and its chain.
func (e *Entry) claim(c *certificate) {
	if e.claimed = c; c == nil {
		return
	}
	e.setChain(c)
	e.KeyType = c.keyType()
}

func (e *Entry) setChain(leaf *certificate) {
	chain, notes := buildChain(leaf, e.pool)
	e.Chain, e.Notes = make([][]byte, len(chain)), notes
	for i, c := range chain {
		e.Chain[i] = c.der
	}
	if e.lone = nil; len(chain) == 1 && !leaf.selfIssued() {
		e.lone = leaf
	}
}

// fail records why the entry is not usable.
func (e *Entry) fail(err error) {
	e.Err, e.Reason, e.Usable, e.Broken = err, err.Error(), false, !skipped(err)
}

// Leaf returns the first certificate of the chain, or nil where there is none
// that Go parses.
func (e *Entry) Leaf() *x509.Certificate {
	if len(e.Chain) == 0 {
		return nil
	}
	leaf, err := x509.ParseCertificate(e.Chain[0])
	if err != nil {
		return nil
	}
	return leaf
}

// Public returns the proven public key, or nil.
func (e *Entry) Public() crypto.PublicKey { return e.public }

// Signer decrypts the key and returns it. Of a proven entry the result is
// checked against the public key of the proof; one of Go's that was kept by
// Prove is returned as it is. Otherwise the key is the caller's, who may call Wipe when
// done with it. Signer is safe for concurrent use.
func (e *Entry) Signer(ctx context.Context) (crypto.Signer, error) {
	if e.kept != nil && e.kept.signer != nil {
		return e.kept.signer, nil
	}
	if e.Kind != keymanager.KindKey {
		return nil, &KeyTypeError{Type: "entry of kind " + e.Kind}
	}
	if e.Err != nil {
		return nil, e.Err
	}
	der, _, err := e.unseal(ctx)
	if err != nil {
		return nil, err
	}
	defer clear(der)
	signer, err := parseKey(der)
	if err != nil {
		return nil, err
	}
	if e.public != nil && !samePublic(signer.Public(), e.public) {
		Wipe(signer)
		return nil, &DamagedError{Where: "key is another than when it was proven"}
	}
	return signer, nil
}

// unseal decrypts the key by the first password that fits, which it returns.
func (e *Entry) unseal(ctx context.Context) ([]byte, *password, error) {
	if !e.key.encrypted() {
		der, err := e.key.unseal(ctx, password{})
		return der, nil, err
	}
	if e.proven != nil {
		der, err := e.key.unseal(ctx, *e.proven)
		return der, e.proven, err
	}
	list, err := e.passwords()
	if err != nil {
		return nil, nil, err
	}
	defer wipe(list)
	for _, pw := range list {
		der, err := e.key.unseal(ctx, pw)
		if err == nil {
			return der, pw.clone(), nil
		}
		if !errors.Is(err, errPassword) {
			return nil, nil, err
		}
	}
	return nil, nil, &PasswordError{Alias: e.Alias, Missing: len(list) == 0}
}

// passwords reads the passwords to try, in order: the key's, then the store's,
// since a key password given for all stores may be needed by some only.
func (e *Entry) passwords() ([]password, error) {
	var list []password
	for _, read := range []func() ([][]byte, error){
		func() ([][]byte, error) { return e.store.src.KeyPassword(e.Alias) },
		e.store.src.Password,
	} {
		spellings, err := read()
		if err != nil {
			wipe(list)
			return nil, err
		}
		list = appendNew(list, readings(spellings))
		wipeBytes(spellings)
	}
	return list, nil
}
