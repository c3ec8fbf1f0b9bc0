// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command pemfile is about the smallest key manager plugin: it serves one PEM
// pair, given as --keystore CERT,KEY, to every client that can verify it.
package main

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

func main() {
	plugin.Serve(keymanager.Tier{Name: "pemfile", Open: open})
}

// manager holds the one pair. A key manager is used by many handshakes at once;
// this one never changes.
type manager struct {
	pair       tls.Certificate
	generation uint64
}

// open reads the pair. What goes wrong here is told to the user of tlsd, which
// then doesn't start.
func open(_ context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
	if len(env.Builders) != 1 || len(env.Builders[0].Paths) != 2 {
		return nil, errors.New("pemfile serves one pair: give --keystore CERT,KEY once")
	}
	source := env.Builders[0]
	pair, err := tls.LoadX509KeyPair(source.Paths[0], source.Paths[1])
	if err != nil {
		return nil, fmt.Errorf("read pair %q: %w", source.Name(), err)
	}
	return &manager{pair, env.FirstGeneration}, nil
}

// Select is asked once for each full handshake. Client and server role are the
// same here: can the peer verify what this key signs?
func (m *manager) Select(_ context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	peer := tls.CertificateRequestInfo{Version: h.Version, SignatureSchemes: h.Schemes, AcceptableCAs: h.Issuers}
	if peer.SupportsCertificate(&m.pair) != nil {
		return nil, keymanager.ErrNoCredential
	}
	return &keymanager.Credential{
		Alias:      "pemfile",
		Generation: m.generation,
		Chain:      m.pair.Certificate,
		Leaf:       m.pair.Leaf,
		Key:        keymanager.FromSigner(m.pair.PrivateKey.(crypto.Signer)),
	}, nil
}
