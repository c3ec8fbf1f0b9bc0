// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package openssl is a key manager that chooses and follows its keystores as
// pkixcached does and signs by OpenSSL's libcrypto, which is faster than Go where
// the key is RSA. It needs cgo and is a module of its own, so that tlsd doesn't.
//
// Private keys are in libcrypto's memory alone, for as long as a view or a
// handshake has them, and are cleared when they go.
package openssl

import (
	"context"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// Tier returns the tier "openssl". It readies libcrypto, which reads its
// configuration (openssl.cnf) and loads the providers named there: once a key
// process has confined itself to its keystores, it can't any more. What goes
// wrong then is an error of Open. A process has one libcrypto, and it must not
// have been used before.
func Tier() keymanager.Tier {
	err := start()
	return keymanager.Tier{Name: "openssl", FilesOnly: true, Open: func(ctx context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
		if err != nil {
			return nil, err
		}
		return open(ctx, env)
	}}
}

// manager is safe for concurrent use: a Select sees one view from beginning to
// end, whatever is reloaded meanwhile.
type manager struct {
	*keystore.Views[*choose.Chooser]
}

var (
	_ keymanager.Lister    = (*manager)(nil)
	_ keymanager.Watcher   = (*manager)(nil)
	_ keymanager.Reloader  = (*manager)(nil)
	_ keymanager.Numbered  = (*manager)(nil)
	_ keymanager.Explainer = (*manager)(nil)
)

func open(ctx context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
	views, err := keystore.OpenViews(ctx, env, keystore.ViewOptions{KeepKeys: true, Load: load, Follow: true},
		func(v *keystore.View) (*choose.Chooser, error) { return choose.New(v.Generation, v.Entries, env) })
	if err != nil {
		return nil, err
	}
	return &manager{views}, nil
}

func (m *manager) Select(ctx context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.Current().Select(h)
}

func (m *manager) Explain(_ context.Context, h *keymanager.Hello) ([]keymanager.Verdict, error) {
	return m.Current().Explain(h)
}
