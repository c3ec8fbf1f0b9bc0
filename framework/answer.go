// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tlsd/tlsd/framework/keymanager"
)

const (
	// verifyEach is how often signatures are verified where verifying costs
	// more than signing: the first one with a key, and then one in so many.
	verifyEach = 64
	// maxKeys bounds how many keys are remembered of one generation.
	maxKeys = 16 << 10
)

// knownKeys remembers the keys that signed, since the front trusts no answer.
// What it remembers dies with the generation: a restarted key process begins a
// new one, so that the first signature with each of its keys is verified again.
type knownKeys struct{ current atomic.Pointer[epoch] }

// epoch is what is known of one generation: what it answered, and its keys.
type epoch struct {
	generation uint64
	answers    answers
	mu         sync.RWMutex
	keys       map[keymanager.KeyID]*keyState // guarded by mu
}

// keyState counts the uses of one key.
type keyState struct {
	uses atomic.Uint64
	bad  atomic.Bool // a signature did not verify, so that each one is looked at
}

// mustVerify counts a signature and says whether it is to be verified: RSA
// always, where it costs 3 % of signing.
func (s *keyState) mustVerify(pub crypto.PublicKey) bool {
	n := s.uses.Add(1)
	if _, ok := pub.(*rsa.PublicKey); ok {
		return true
	}
	return s.bad.Load() || n%verifyEach == 1
}

// at returns the epoch of the newest generation heard of, generation included.
func (a *knownKeys) at(generation uint64) *epoch {
	for {
		old := a.current.Load()
		if old != nil && old.generation >= generation {
			return old
		}
		e := &epoch{generation: generation, keys: map[keymanager.KeyID]*keyState{}}
		if a.current.CompareAndSwap(old, e) {
			return e
		}
	}
}

// learn takes in what a key manager tells of a generation. It tells of each one
// before what it answers is given again.
func (a *knownKeys) learn(c *keymanager.Change) {
	e := a.at(c.Generation)
	if e.generation == c.Generation && c.NamesKnown {
		e.answers.names.Store(newKnownNames(c))
	}
}

// checkAnswer returns what crypto/tls is to work with, but for the private key,
// or why the answer to h is wrong.
func checkAnswer(h *keymanager.Hello, cred *keymanager.Credential) (*tls.Certificate, error) {
	if len(cred.Chain) == 0 || cred.Key == nil {
		return nil, errors.New("a credential without a chain or a key")
	}
	leaf, err := leafOf(cred)
	if err != nil {
		return nil, fmt.Errorf("a leaf that does not parse: %w", err)
	}
	if pub, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(cred.Key.Public()) {
		return nil, errors.New("a key that is not the leaf's")
	}
	schemes := cred.Schemes
	if schemes == nil {
		schemes = keymanager.Schemes()
	}
	cert := &tls.Certificate{
		Certificate:                  cred.Chain,
		Leaf:                         leaf,
		OCSPStaple:                   cred.OCSPStaple,
		SupportedSignatureAlgorithms: schemes,
	}
	return cert, checkFits(h, cred, cert)
}

// checkFits returns nil if the credential, whose certificate is cert, is one
// that h may be answered with.
func checkFits(h *keymanager.Hello, cred *keymanager.Credential, cert *tls.Certificate) error {
	if h.Alias != "" && !strings.EqualFold(cred.Alias, h.Alias) {
		return fmt.Errorf("another entry than %q, which the listener or host demands", h.Alias)
	}
	usable := func(s tls.SignatureScheme) bool {
		return keymanager.SchemeFits(s, cert.Leaf.PublicKey, h.Version) && slices.Contains(cert.SupportedSignatureAlgorithms, s)
	}
	if !slices.ContainsFunc(h.Schemes, usable) {
		return fmt.Errorf("a %v key, which fits no signature scheme that the peer offered", cert.Leaf.PublicKeyAlgorithm)
	}
	return nil
}

// leafOf returns the leaf of cred's chain, which cred.Leaf need not be.
func leafOf(cred *keymanager.Credential) (*x509.Certificate, error) {
	if cred.Leaf != nil && bytes.Equal(cred.Leaf.Raw, cred.Chain[0]) {
		return cred.Leaf, nil
	}
	return x509.ParseCertificate(cred.Chain[0])
}

// state returns the state of a key, which is made where there is none. When
// too many are known all are forgotten, which costs a few verifications.
func (e *epoch) state(id keymanager.KeyID) *keyState {
	e.mu.RLock()
	s := e.keys[id]
	e.mu.RUnlock()
	if s != nil {
		return s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.keys[id]; s != nil {
		return s
	}
	if len(e.keys) >= maxKeys {
		clear(e.keys)
	}
	s = new(keyState)
	e.keys[id] = s
	return s
}
