// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
)

// Key signs TLS handshakes with one private key. It is safe for concurrent use.
type Key interface {
	// Public returns the public key: *rsa.PublicKey, *ecdsa.PublicKey or
	// ed25519.PublicKey.
	Public() crypto.PublicKey
	// Sign signs req.Message by req.Scheme. An implementation calls
	// req.CheckKey before it touches the key; FromSigner's does.
	Sign(ctx context.Context, req *SignRequest) ([]byte, error)
}

// SignRequest asks for one signature in one handshake. It carries the message
// and never a digest, so that the signer can see that it is a TLS handshake.
type SignRequest struct {
	Scheme  tls.SignatureScheme
	Purpose Purpose
	Message []byte

	Listener, ConnID, Peer string // claims of the front, for logs and policy
}

// KeyID names a key: SHA-256 of the SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
type KeyID [sha256.Size]byte

func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// KeyIDOf returns the key id of a certificate.
func KeyIDOf(leaf *x509.Certificate) KeyID {
	return sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
}

// FromSigner makes a Key of a crypto.Signer. Its Sign refuses what is not
// visibly a TLS handshake message of the declared purpose and a scheme that is
// none for the key, hashes the message by the scheme (Ed25519: not) and signs,
// unless ctx has ended. The signer is used from many goroutines and stays the
// caller's.
func FromSigner(s crypto.Signer) Key { return signerKey{s} }

type signerKey struct{ signer crypto.Signer }

func (k signerKey) Public() crypto.PublicKey { return k.signer.Public() }

func (k signerKey) Sign(ctx context.Context, req *SignRequest) ([]byte, error) {
	if err := req.CheckKey(k.signer.Public()); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	opts := SignerOpts(req.Scheme)
	return k.signer.Sign(rand.Reader, digestOf(opts.HashFunc(), req.Message), opts)
}
