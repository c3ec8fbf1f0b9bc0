// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/tlsd/tlsd/bench/fleet"
	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/memory"
	"github.com/tlsd/tlsd/bench/report"
	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
	"github.com/tlsd/tlsd/plugins/sunx509"
)

// Parts that tlsbench plays in processes of its own, where the name of a tier is
// a part too: a server as partPlain, but for its key.
const (
	partLoad   = "load"
	partPlain  = report.Plain
	partHTTP   = "net/http"
	partMemory = "turns"
)

func tiers() []keymanager.Tier {
	return []keymanager.Tier{pkixcached.Tier(), sunx509.Tier(), pkix.Tier()}
}

func tierNamed(name string) *keymanager.Tier {
	for _, t := range tiers() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}

// play plays a part until ctx or its input ends.
func play(ctx context.Context, part string, args []string) error {
	const serverArgs = 5 // address, certificate, key, keystore, password file: see whole.Self
	switch {
	case part == partLoad:
		return load.Serve(ctx, os.Stdin, os.Stdout)
	case part == partMemory && len(args) == 1:
		return playMemory(ctx, args[0])
	case part == partPlain && len(args) == serverArgs:
		return fleet.ServePlain(ctx, args[0], args[1], args[2])
	case part == partHTTP && len(args) == serverArgs:
		return fleet.ServeHTTP(ctx, args[0], args[1], args[2])
	case tierNamed(part) != nil && len(args) == serverArgs:
		return serveIsolated(ctx, args[0], part, keymanager.Source{
			Paths: []string{args[3]}, Store: keymanager.PasswordRef{File: args[4]},
		})
	}
	return fmt.Errorf("no command %q: there are servers, memory, scale, where and all", part)
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

// memoryJob is what a process is given that has turns in memory.
type memoryJob struct {
	Files       material.Files
	Tier        string // empty: crypto/tls with its key; report.Derivation: no handshakes, but key derivations
	Version     uint16
	Resume, SNI bool
}

func playMemory(ctx context.Context, arg string) (err error) {
	var j memoryJob
	if err := json.Unmarshal([]byte(arg), &j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if j.Tier == report.Derivation {
		return memory.Serve(os.Stdin, os.Stdout, memory.Derive)
	}
	p, err := memory.NewPair(ctx, j.Files, memory.Spec{Tier: tierNamed(j.Tier), Version: j.Version, Resume: j.Resume, SNI: j.SNI})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return memory.Serve(os.Stdin, os.Stdout, p.Handshake)
}

// self returns a command that plays a part of this program.
func self(args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(path, args...), nil
}
