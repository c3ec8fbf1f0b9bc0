// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/tlsd/tlsd/bench/fleet"
	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
	"github.com/tlsd/tlsd/plugins/sunx509"
)

// Parts that tlsbench plays in processes of its own: the load generator, and
// the servers that whole.Self starts, where a tier's name is a part too.
const (
	partLoad  = "load"
	partPlain = "crypto/tls"
	partHTTP  = "net/http"

	partArgs = 6 // part, address, certificate, key, keystore, password file
)

func tiers() []keymanager.Tier {
	return []keymanager.Tier{pkixcached.Tier(), sunx509.Tier(), pkix.Tier()}
}

// serve plays a server's part until ctx ends.
func serve(ctx context.Context, args []string) error {
	part, addr, cert, key, store, password := args[0], args[1], args[2], args[3], args[4], args[5]
	switch part {
	case partPlain:
		return fleet.ServePlain(ctx, addr, cert, key)
	case partHTTP:
		return fleet.ServeHTTP(ctx, addr, cert, key)
	}
	return serveIsolated(ctx, addr, part, keymanager.Source{
		Paths: []string{store}, Store: keymanager.PasswordRef{File: password},
	})
}

// serveIsolated is the reference but for its key, which a key process holds.
func serveIsolated(ctx context.Context, addr, tier string, store keymanager.Source) (err error) {
	keys, err := framework.Open(ctx, framework.Config{KeyManager: tier, Tiers: tiers(), Keystores: []keymanager.Source{store}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	return fleet.ServeConfig(ctx, addr, keys.TLSConfig())
}
