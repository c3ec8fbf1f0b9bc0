// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/whole"
	"github.com/tlsd/tlsd/internal/testca"
)

// plan is what is measured of whole servers.
type plan struct {
	tiers    []string
	keys     []string
	versions []string
	resume   []string
	callers  []string
	entries  int
	rounds   int
	turn     time.Duration
	builds   []string // NAME=PATH
	http     bool
	library  bool
	env      []string
}

func parse(args []string) (*plan, error) {
	p := &plan{}
	f := flag.NewFlagSet("tlsbench", flag.ContinueOnError)
	list := func(p *[]string, name, def, usage string) {
		*p = strings.Split(def, ",")
		f.Func(name, usage+" (default "+def+")", func(s string) error { *p = strings.Split(s, ","); return nil })
	}
	list(&p.tiers, "only", "pkixcached,sunx509,pkix", "tiers")
	list(&p.keys, "key", "p256,rsa2048", "key types")
	list(&p.versions, "version", "1.3", "TLS versions: 1.3, 1.2")
	list(&p.resume, "resume", "no", "no, yes: full handshakes, resumed ones")
	list(&p.callers, "callers", "4,32", "clients at once")
	f.IntVar(&p.entries, "entries", 1, "entries of the keystore; the last one is served")
	f.IntVar(&p.rounds, "rounds", 8, "turns of each server")
	f.DurationVar(&p.turn, "turn", 1500*time.Millisecond, "time of each turn")
	f.BoolVar(&p.http, "http", false, "measure net/http with its key too")
	f.BoolVar(&p.library, "library", false, "measure the library in the reference's place too: the same accept loop, no connection is served")
	f.Func("tlsd", "NAME=PATH: measure this executable, repeatable (default: tlsd of this tree is built)", appendTo(&p.builds))
	f.Func("env", "NAME=VALUE for tlsd's environment, repeatable", appendTo(&p.env))
	return p, f.Parse(args)
}

func appendTo(list *[]string) func(string) error {
	return func(s string) error { *list = append(*list, s); return nil }
}

// servers measures whole servers as args say.
func servers(ctx context.Context, args []string) error {
	p, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tlsbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	candidates, err := p.candidates(dir)
	if err != nil {
		return err
	}
	for _, key := range p.keys {
		if err := p.field(ctx, filepath.Join(dir, key), key, candidates); err != nil {
			return err
		}
	}
	return nil
}

// candidates are the reference and each tier of each build.
func (p *plan) candidates(dir string) ([]whole.Candidate, error) {
	if len(p.builds) == 0 {
		path := filepath.Join(dir, "tlsd")
		if err := build(path); err != nil {
			return nil, err
		}
		p.builds = []string{"=" + path}
	}
	all := []whole.Candidate{whole.Self(partPlain, partPlain)}
	if p.http {
		all = append(all, whole.Self(partHTTP, partHTTP))
	}
	if p.library {
		for _, tier := range p.tiers {
			all = append(all, whole.Self("library "+tier, tier))
		}
	}
	for _, b := range p.builds {
		name, path, ok := strings.Cut(b, "=")
		if !ok {
			return nil, fmt.Errorf("flag -tlsd: %q is not NAME=PATH", b)
		}
		for _, tier := range p.tiers {
			all = append(all, whole.Tlsd(name, path, tier, p.env...))
		}
	}
	return all, nil
}

// build makes tlsd as the Makefile does.
func build(path string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/tlsd/tlsd/cmd/tlsd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tlsd: %w: %s", err, out)
	}
	return nil
}

// field measures servers with one type of key, in all ways.
func (p *plan) field(ctx context.Context, dir, key string, candidates []whole.Candidate) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	files, err := material.Make(dir, material.Spec{Key: testca.KeyType(strings.ToUpper(key)), Entries: p.entries})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := whole.NewField(ctx, files, func() *exec.Cmd { return exec.Command(self, partLoad) }, candidates)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ways, err := p.ways()
	if err != nil {
		return err
	}
	for _, w := range ways {
		rows, err := f.Run(ctx, w, p.rounds, p.turn)
		if err != nil {
			return err
		}
		printRows(os.Stdout, key, w, rows)
	}
	return nil
}

func (p *plan) ways() (ways []whole.Way, err error) {
	versions := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	for _, version := range p.versions {
		for _, resume := range p.resume {
			for _, callers := range p.callers {
				n, err := strconv.Atoi(callers)
				if err != nil || n < 1 || versions[version] == 0 || !slices.Contains([]string{"no", "yes"}, resume) {
					return nil, fmt.Errorf("no way to measure: -version %s -resume %s -callers %s", version, resume, callers)
				}
				ways = append(ways, whole.Way{Version: versions[version], Resume: resume == "yes", Callers: n})
			}
		}
	}
	return ways, nil
}
