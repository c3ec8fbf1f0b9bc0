// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package sunx509 is the key manager that behaves as the JDK's SunX509 up to
// JDK 25 does: it decrypts every key at start, keeps them, and looks at no
// certificate when it chooses. It is there for comparison and migration; a
// keystore that changes is not seen until a reload is asked for.
//
// It differs from the JDK in that entries come in store order, not in that of a
// hash table, and that a key which the peer can't verify is not handed out.
package sunx509

import (
	"context"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// Tier returns the tier "sunx509".
func Tier() keymanager.Tier { return keymanager.Tier{Name: "sunx509", Open: open, FilesOnly: true} }

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
	views, err := keystore.OpenViews(ctx, env, keystore.ViewOptions{KeepKeys: true, Strict: true},
		func(v *keystore.View) (*choose.Chooser, error) {
			return choose.NewUnchecked(v.Generation, v.Entries, env)
		})
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
