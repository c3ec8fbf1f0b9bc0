// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// LoadFunc makes a key of a private key in DER (PKCS#8, PKCS#1 or SEC 1), which
// is of a type that TLS can use here as far as its structure tells. It is how
// keys come to be anywhere else than in Go's crypto packages: in another
// library, or in a device.
//
// der is wiped when a LoadFunc returns, and it keeps nothing of it. It is called
// by several goroutines at once. What it returns is held against the certificate
// by its public key. It belongs to the views that have the key and to the
// handshakes that still sign with it, and is left to the garbage collector.
type LoadFunc func(der []byte) (keymanager.Key, error)

// loaded is a decrypted key.
type loaded struct {
	keymanager.Key
	signer crypto.Signer // the same, where it is Go's
}

// wipe is for a key that nobody has yet. One that a LoadFunc made is no more to
// be reached, which has to be enough.
func (k *loaded) wipe() { Wipe(k.signer) }

// load makes a key of der, which it may overwrite.
func (o ProveOptions) load(der []byte) (*loaded, error) {
	if o.Load == nil || !o.Keep {
		signer, err := parseKey(der)
		if err != nil {
			return nil, err
		}
		return &loaded{keymanager.FromSigner(signer), signer}, nil
	}
	strict, _, err := readKey(der)
	if err != nil {
		return nil, err
	}
	defer clear(strict) // which is a copy where der was BER
	key, err := o.Load(strict)
	if err != nil {
		return nil, &DamagedError{Where: "private key", Err: err}
	}
	if err := usableType(key.Public()); err != nil {
		return nil, err
	}
	return &loaded{Key: key}, nil
}
