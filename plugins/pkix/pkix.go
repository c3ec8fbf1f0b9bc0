// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package pkix is the key manager that behaves as the JDK's PKIX does: it checks
// certificates when it chooses, and decrypts the chosen key inside each
// signature, so that no decrypted key is kept between handshakes. That costs a
// key derivation each time. Which entry is chosen is framework/choose's
// business.
package pkix

import (
	"context"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// Tier returns the tier "pkix".
func Tier() keymanager.Tier {
	return keymanager.Tier{Name: "pkix", Open: open, FilesOnly: true, KeepsNoKeys: true}
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
	views, err := keystore.OpenViews(ctx, env, keystore.ViewOptions{Follow: true},
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
	m.Glance(ctx)
	c, err := m.Current().Select(h)
	if err != nil {
		return nil, err
	}
	c.Reuse = keymanager.Reuse{} // each handshake is to see the keystore as it is then
	return c, nil
}

func (m *manager) Explain(_ context.Context, h *keymanager.Hello) ([]keymanager.Verdict, error) {
	return m.Current().Explain(h)
}
