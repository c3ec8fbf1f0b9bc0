// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// errDigest is returned when a digest is to be signed. crypto/tls hands over
// the whole message in TLS 1.2 and 1.3, so that only older versions, or code
// that does something else than a handshake, ask for that.
var errDigest = errors.New("sign: keys sign TLS 1.2 and 1.3 handshakes and nothing else")

// signer is the private key of one handshake, as crypto/tls sees it. Each
// handshake has its own, since a signature has to end with its handshake and
// crypto.Signer takes no context.
type signer struct {
	keys      *Keys
	handshake *handshake
	cred      *keymanager.Credential
	leaf      *x509.Certificate
	purpose   keymanager.Purpose
}

var (
	_ crypto.Signer        = (*signer)(nil)
	_ crypto.MessageSigner = (*signer)(nil)
)

// Public returns the public key.
func (s *signer) Public() crypto.PublicKey { return s.leaf.PublicKey }

// Sign refuses: there is no telling what a digest is of.
func (s *signer) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, errDigest }

// SignMessage has the key process sign msg, which must be a handshake message.
// The random source is not used: the key process has its own.
func (s *signer) SignMessage(_ io.Reader, msg []byte, opts crypto.SignerOpts) ([]byte, error) {
	began := time.Now()
	sig, err := s.signed(msg, opts)
	if err != nil {
		s.handshake.fail(ReasonPlugin, err)
	}
	if s.keys.observer.Signature != nil {
		s.keys.observer.Signature(SignatureEvent{s.cred.Builder, s.cred.Alias, time.Since(began), err})
	}
	return sig, err
}

func (s *signer) signed(msg []byte, opts crypto.SignerOpts) ([]byte, error) {
	scheme, err := keymanager.SchemeOf(s.Public(), opts)
	if err != nil {
		return nil, err
	}
	hs := s.handshake
	ctx, cancel := hs.bounded(s.keys.timeout)
	defer cancel()
	sig, err := s.cred.Key.Sign(ctx, &keymanager.SignRequest{
		Scheme: scheme, Purpose: s.purpose, Message: msg,
		Listener: hs.listener, ConnID: hs.id, Peer: hs.peer,
	})
	if err != nil {
		s.keys.report(&s.keys.failures, logging.MsgSignFailed, s.cred, hs, "the key process did not sign", err)
		return nil, fmt.Errorf("sign with the key of alias %q: %w", s.cred.Alias, err)
	}
	// By now the generation may be a newer one than when the key was selected.
	state := s.keys.known.at(s.cred.Generation).state(keymanager.KeyIDOf(s.leaf))
	if !state.mustVerify(s.Public()) {
		return sig, nil
	}
	if err := keymanager.Verify(s.Public(), scheme, msg, sig); err != nil {
		state.bad.Store(true)
		s.keys.report(&s.keys.lies, logging.MsgSignFailed, s.cred, hs, "the key process gave a wrong signature", err)
		return nil, fmt.Errorf("sign with the key of alias %q: %w", s.cred.Alias, err)
	}
	return sig, nil
}
