// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// keyRef says which key is to sign. What stands beside the id is for the log.
type keyRef struct {
	id         keymanager.KeyID
	key        keymanager.Key // nil: to be found by id
	builder    int
	alias      string
	generation uint64
}

// sign makes one signature, if req is visibly a TLS handshake, and logs it.
func (s *service) sign(ctx context.Context, ref keyRef, req *keymanager.SignRequest) ([]byte, error) {
	sig, err := s.signQuietly(ctx, ref, req)
	s.logSigned(ctx, ref, req, err)
	return sig, err
}

// signQuietly refuses what is no handshake before it looks for a key, and a
// scheme that is none for the key before it has that sign, whatever the tier
// checks.
func (s *service) signQuietly(ctx context.Context, ref keyRef, req *keymanager.SignRequest) (sig []byte, err error) {
	defer s.recovered("sign", &err)
	if err := req.Check(); err != nil {
		return nil, err
	}
	key := ref.key
	if key == nil {
		if key, err = s.key(ctx, ref.id); err != nil {
			return nil, err
		}
	}
	if err := req.CheckKey(key.Public()); err != nil {
		return nil, err
	}
	sig, err = key.Sign(ctx, req)
	if err == nil && len(sig) == 0 {
		err = errors.New("sign: the tier returned neither signature nor error")
	}
	return sig, err
}

// logSigned writes what became of a request. One that failed because its
// handshake had ended is nobody's fault.
func (s *service) logSigned(ctx context.Context, ref keyRef, req *keymanager.SignRequest, err error) {
	level, msg, reason := zap.DebugLevel, logging.MsgSigned, ""
	switch {
	case err == nil:
	case ctx.Err() != nil:
		msg, reason = logging.MsgSignFailed, "the handshake ended first"
	case errors.Is(err, keymanager.ErrNotHandshake):
		level, msg, reason = zap.ErrorLevel, logging.MsgSignFailed, "refused"
	case errors.Is(err, keymanager.ErrUnknownKey):
		level, msg, reason = zap.ErrorLevel, logging.MsgSignFailed, "key id unknown"
	default:
		level, msg, reason = zap.ErrorLevel, logging.MsgSignFailed, "the key manager could not sign"
	}
	if !s.log.Core().Enabled(level) {
		return // before the fields are made
	}
	logging.LogKey(s.log, level, msg, logging.KeyEvent{
		Builder: ref.builder, Alias: ref.alias, Generation: ref.generation, Reason: reason, Err: err,
	},
		zap.Stringer(logging.FieldKeyID, ref.id),
		zap.Stringer(logging.FieldScheme, req.Scheme),
		zap.String(logging.FieldListener, req.Listener),
		zap.String(logging.FieldConn, req.ConnID),
		zap.String(logging.FieldPeer, req.Peer))
}

// key finds a key by id. One that isn't held is looked for once more in a list
// made after the call, since keys may have come without a new generation.
func (s *service) key(ctx context.Context, id keymanager.KeyID) (keymanager.Key, error) {
	if key, ok := s.keys.lookup(id); ok {
		return key, nil
	}
	s.refreshSince(ctx)
	if key, ok := s.keys.lookup(id); ok {
		return key, nil
	}
	return nil, fmt.Errorf("sign by key id %s: %w", id, keymanager.ErrUnknownKey)
}

// refreshSince lists the keys, if nobody has done so by the time it is this
// call's turn: a flood of unknown ids costs one list at a time.
func (s *service) refreshSince(ctx context.Context) {
	before := s.lists.Load()
	s.listing.Lock()
	defer s.listing.Unlock()
	if s.lists.Load() == before && ctx.Err() == nil {
		s.refreshLocked(ctx)
	}
}

// refresh holds the keys of all entries that the tier lists.
func (s *service) refresh(ctx context.Context) {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.refreshLocked(ctx)
}

func (s *service) refreshLocked(ctx context.Context) {
	entries, generation, err := s.list(ctx)
	if err != nil {
		if !errors.Is(err, ErrUnsupported) && ctx.Err() == nil {
			s.log.Error("list failed", zap.String(logging.FieldError, err.Error()))
		}
		return
	}
	s.lists.Add(1)
	for _, e := range entries {
		if id, ok := entryKeyID(e); ok {
			s.keys.put(id, e.Key, generation)
		}
	}
}

// entryKeyID returns the id of an entry's key, if it has one that can be named.
func entryKeyID(e keymanager.Entry) (keymanager.KeyID, bool) {
	if e.Key == nil || len(e.Chain) == 0 {
		return keymanager.KeyID{}, false
	}
	leaf, err := x509.ParseCertificate(e.Chain[0])
	if err != nil {
		return keymanager.KeyID{}, false
	}
	return keymanager.KeyIDOf(leaf), true
}

// followKeys lists the keys of each new generation, until ctx ends. It is a
// goroutine of its own, so that a tier may tell of a generation while it holds
// what its List needs.
func (s *service) followKeys(ctx context.Context) {
	for {
		state := s.feed.now.Load()
		if s.keys.advance(state.change.Generation) {
			s.refresh(ctx)
		}
		select {
		case <-state.next:
		case <-ctx.Done():
			return
		}
	}
}
