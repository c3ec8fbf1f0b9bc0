// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command keydir is a key manager plugin whose keys are somewhere else: here in
// a directory of NAME.crt and NAME.key, read at each signature. Which of them a
// client gets is decided as tier pkix decides it, by framework/choose.
package main

import (
	"context"
	"crypto"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

func main() {
	plugin.Serve(keymanager.Tier{Name: "keydir", Open: open})
}

type manager struct{ chooser *choose.Chooser }

func (m manager) Select(_ context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	return m.chooser.Select(h)
}

// open enters every pair of the directory, which the plugin's settings name.
func open(_ context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
	var settings struct{ Dir string }
	if err := json.Unmarshal(env.Settings, &settings); err != nil || settings.Dir == "" {
		return nil, fmt.Errorf("keydir: set dir to the directory with NAME.crt and NAME.key, by --plugin-setting keydir.dir=DIR")
	}
	certs, err := filepath.Glob(filepath.Join(settings.Dir, "*.crt"))
	if err != nil {
		return nil, err
	}
	var entries []keymanager.Entry
	for _, path := range certs {
		k := key{base: strings.TrimSuffix(path, ".crt")}
		pair, err := k.read()
		if err != nil {
			return nil, err
		}
		k.public = pair.Leaf.PublicKey
		entries = append(entries, keymanager.Entry{
			Alias: filepath.Base(k.base), Kind: keymanager.KindKey, Chain: pair.Certificate, Key: k, Usable: true,
		})
	}
	chooser, err := choose.New(env.FirstGeneration, entries, env)
	return manager{chooser}, err
}

// key is where a private key lies, and not the key.
type key struct {
	base   string
	public crypto.PublicKey
}

func (k key) Public() crypto.PublicKey { return k.public }

// Sign reads the key, and signs with it if the message is a TLS handshake, which
// FromSigner looks after.
func (k key) Sign(ctx context.Context, req *keymanager.SignRequest) ([]byte, error) {
	pair, err := k.read()
	if err != nil {
		return nil, err
	}
	return keymanager.FromSigner(pair.PrivateKey.(crypto.Signer)).Sign(ctx, req)
}

func (k key) read() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(k.base+".crt", k.base+".key")
	if err != nil {
		return pair, fmt.Errorf("read pair %q: %w", k.base, err)
	}
	return pair, nil
}
