// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package pkixcached is the default key manager: it chooses exactly as pkix does
// and keeps the decrypted keys with the view that they belong to, so that it is
// as fast as sunx509. A view is proven before it is used and replaced as one;
// its keys go with it. Which entry is chosen is framework/choose's business.
package pkixcached

import (
	"context"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// Tier returns the tier "pkixcached".
func Tier() keymanager.Tier { return keymanager.Tier{Name: "pkixcached", Open: open, FilesOnly: true} }

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
	views, err := keystore.OpenViews(ctx, env, keystore.ViewOptions{KeepKeys: true, Follow: true},
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
