// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// Select asks the key process for a credential. Its Key signs in the key
// process, whichever one runs by then.
func (c *caller) Select(ctx context.Context, hello *keymanager.Hello) (*keymanager.Credential, error) {
	req := helloToProto(hello)
	req.TimeoutMillis = timeLeft(ctx)
	// The call may outlast ours, and hello is the caller's.
	req.Alpn, req.Issuers = slices.Clone(req.Alpn), slices.Clone(req.Issuers)
	return c.choose(ctx, req)
}

func (c *caller) choose(ctx context.Context, req *pb.SelectRequest) (*keymanager.Credential, error) {
	return call(ctx, c, func(waiting *wait, l *link) (*keymanager.Credential, error) {
		resp, err := gated(ctx, waiting, l, l.selects, func(ctx context.Context) (*pb.SelectResponse, error) {
			return l.api.Select(ctx, req)
		})
		if err != nil {
			return nil, err
		}
		c.newest.raise(max(resp.GetNewestGeneration(), resp.GetGeneration()), "selection")
		cred, id, err := credentialFromProto(resp, l.leaves.parse)
		if err != nil {
			return nil, err
		}
		cred.Key = &remoteKey{caller: c, id: id, pub: cred.Leaf.PublicKey, origin: *cred, hello: req}
		return cred, nil
	})
}

// remoteKey is a key that the key process holds, by its id.
type remoteKey struct {
	caller *caller
	id     keymanager.KeyID
	pub    crypto.PublicKey
	origin keymanager.Credential // builder, alias and generation, for the log over there
	hello  *pb.SelectRequest     // that it was selected for; nil: none
}

var _ keymanager.Key = (*remoteKey)(nil)

// Public returns the public key of the leaf certificate.
func (k *remoteKey) Public() crypto.PublicKey { return k.pub }

// Sign has the key process sign. One that doesn't know the key is asked once to
// select for the same hello again, which makes it look at its keystores, and is
// then asked once more, if it chose the same key.
func (k *remoteKey) Sign(ctx context.Context, req *keymanager.SignRequest) ([]byte, error) {
	m := signToProto(k.id, req)
	m.TimeoutMillis = timeLeft(ctx)
	m.Builder, m.Alias, m.Generation = int32(k.origin.Builder), k.origin.Alias, k.origin.Generation
	sig, err := k.caller.sign(ctx, m)
	if k.hello == nil || !errors.Is(err, keymanager.ErrUnknownKey) {
		return sig, err
	}
	hello := proto.CloneOf(k.hello) // the answer may have been given to several
	hello.ConnId, hello.Peer, hello.TimeoutMillis = m.GetConnId(), m.GetPeer(), timeLeft(ctx)
	again, selectErr := k.caller.choose(ctx, hello)
	if selectErr != nil || again.Key.(*remoteKey).id != k.id {
		return nil, err
	}
	return k.caller.sign(ctx, m)
}

func (c *caller) sign(ctx context.Context, m *pb.SignRequest) ([]byte, error) {
	return call(ctx, c, func(waiting *wait, l *link) ([]byte, error) {
		resp, err := l.sign(ctx, waiting, m)
		if err != nil {
			return nil, err
		}
		c.newest.raise(resp.GetNewestGeneration(), "signature")
		return resp.GetSignature(), nil
	})
}

// sign goes over a lane where one is free and the message is not too long, else by
// gRPC.
func (l *link) sign(ctx context.Context, waiting *wait, m *pb.SignRequest) (*pb.SignResponse, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if l.lanes != nil && l.about.GetLanes() && proto.Size(m) <= maxOnLane {
		if resp, used, err := l.signOnLane(ctx, waiting, m); used {
			return resp, meaning(ctx, err)
		}
	}
	return gated(ctx, waiting, l, l.signs, func(ctx context.Context) (*pb.SignResponse, error) {
		return l.api.Sign(ctx, m)
	})
}

// List returns what the keystores hold. Usable entries have a Key that signs in
// the key process.
func (c *caller) List(ctx context.Context) ([]keymanager.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	return call(ctx, c, func(_ *wait, l *link) ([]keymanager.Entry, error) {
		resp, err := l.api.List(ctx, &pb.ListRequest{}, large())
		if err != nil {
			return nil, meaning(ctx, err)
		}
		c.newest.raise(resp.GetGeneration(), "list")
		entries := make([]keymanager.Entry, 0, len(resp.GetEntries()))
		for _, m := range resp.GetEntries() {
			e, leaf, id, err := entryFromProto(m, l.leaves.parse)
			if err != nil {
				return nil, err
			}
			if leaf != nil {
				e.Key = &remoteKey{caller: c, id: id, pub: leaf.PublicKey, origin: keymanager.Credential{
					Builder: e.Builder, Alias: e.Alias, Generation: resp.GetGeneration(),
				}}
			}
			entries = append(entries, e)
		}
		return entries, nil
	})
}

// Reload has the key process read its keystores anew. On error the old state
// stays in use.
func (c *caller) Reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	_, err := call(ctx, c, func(_ *wait, l *link) (struct{}, error) {
		resp, err := l.api.Reload(ctx, &pb.ReloadRequest{})
		if err == nil {
			c.newest.raise(resp.GetGeneration(), "reload")
		}
		return struct{}{}, meaning(ctx, err)
	})
	return c.spelled(err)
}

// Trust has the key process read a trust store. A path or password file that is
// a descriptor's must have been named in Spec.Files.
func (c *caller) Trust(ctx context.Context, path, typ string, pw keymanager.PasswordRef) ([][]byte, []string, error) {
	path, err := c.files.known(path)
	if err == nil && pw.File != "" {
		pw.File, err = c.files.known(pw.File)
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	resp, err := call(ctx, c, func(_ *wait, l *link) (*pb.TrustResponse, error) {
		resp, err := l.api.Trust(ctx, &pb.TrustRequest{Path: path, Type: typ, Password: passwordToProto(pw)}, large())
		return resp, meaning(ctx, err)
	})
	if err != nil {
		return nil, nil, c.spelled(err)
	}
	if len(resp.GetCertificates()) == 0 {
		return nil, nil, errors.New("the key process returned no trusted certificate")
	}
	warnings := make([]string, 0, len(resp.GetWarnings()))
	for _, w := range resp.GetWarnings() {
		warnings = append(warnings, clean(w, maxErrorText))
	}
	return resp.GetCertificates(), warnings, nil
}
