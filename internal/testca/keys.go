// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// KeyType is a kind of private key. The empty KeyType is P256.
type KeyType string

// Key types. RSA1024 is too weak and P224 no TLS curve: both are for tests of
// refusal.
const (
	RSA1024 KeyType = "RSA1024"
	RSA2048 KeyType = "RSA2048"
	RSA3072 KeyType = "RSA3072"
	P224    KeyType = "P224"
	P256    KeyType = "P256"
	P384    KeyType = "P384"
	P521    KeyType = "P521"
	Ed25519 KeyType = "Ed25519"
)

// NewKey makes a key. RSA keys, slow to make, come from a ring of eight per
// type and process: nine in a row hold one twice. Where that matters, or where
// two certificates are to share a key, set Spec.Signer.
func NewKey(t testing.TB, kt KeyType) crypto.Signer {
	t.Helper()
	key, err := newKey(kt)
	if err != nil {
		t.Fatalf("make key %q: %v", kt, err)
	}
	return key
}

func newKey(kt KeyType) (crypto.Signer, error) {
	switch kt {
	case RSA1024:
		return rsa1024.next()
	case RSA2048:
		return rsa2048.next()
	case RSA3072:
		return rsa3072.next()
	case P224:
		return ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	case P256, "":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case P384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case P521:
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("unknown key type")
}

var (
	rsa1024 = newRing(1024)
	rsa2048 = newRing(2048)
	rsa3072 = newRing(3072)
)

const ringSize = 8

// ring hands out keys in turn, each made when it is first asked for.
type ring struct {
	calls atomic.Uint32
	keys  [ringSize]func() (*rsa.PrivateKey, error)
}

func newRing(bits int) *ring {
	r := &ring{}
	for i := range r.keys {
		r.keys[i] = sync.OnceValues(func() (*rsa.PrivateKey, error) {
			return rsa.GenerateKey(rand.Reader, bits)
		})
	}
	return r
}

func (r *ring) next() (crypto.Signer, error) {
	return r.keys[(r.calls.Add(1)-1)%ringSize]()
}
