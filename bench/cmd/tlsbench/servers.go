// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/report"
	"github.com/tlsd/tlsd/bench/whole"
	"github.com/tlsd/tlsd/internal/testca"
)

// ways are the flags that say what handshakes are made, and how long.
type ways struct {
	tiers, keys, versions, resume []string
	rounds                        int
	turn                          time.Duration
}

func (l lists) ways(w *ways, keys string) {
	l.list(&w.tiers, "only", "pkixcached,sunx509,pkix", "tiers")
	l.list(&w.keys, "key", keys, "key types")
	l.list(&w.versions, "version", "1.3", "TLS versions: 1.3, 1.2")
	l.list(&w.resume, "resume", "no", "no, yes: full handshakes, resumed ones")
	l.IntVar(&w.rounds, "rounds", 20, "turns of each candidate")
	l.DurationVar(&w.turn, "turn", 300*time.Millisecond, "time of each turn")
}

func versionOf(s string) (uint16, error) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if tls.VersionName(v) == "TLS "+s {
			return v, nil
		}
	}
	return 0, fmt.Errorf("flag -version: %q is neither 1.2 nor 1.3", s)
}

// serversPlan is what is measured of whole servers.
type serversPlan struct {
	ways
	callers              []string
	entries              int
	builds, env          []string // NAME=PATH, NAME=VALUE
	http, library, nginx bool
	openssl              bool
	watch                string // shell command
	dir                  string
	stdout               io.Writer
}

// servers measures whole servers as args say and prints what it finds.
func servers(ctx context.Context, args []string, stdout io.Writer) (records []report.Record, err error) {
	p, f := &serversPlan{stdout: stdout}, flags("servers")
	f.ways(&p.ways, "p256,rsa2048")
	f.list(&p.callers, "callers", "4,32", "clients at once")
	f.IntVar(&p.entries, "entries", 1, "entries of the keystore; the last one is served")
	f.BoolVar(&p.http, "http", false, "measure net/http with its key too")
	f.BoolVar(&p.library, "library", false, "measure the library in the reference's place too: the same accept loop, no connection is served")
	f.BoolVar(&p.nginx, "nginx", false, "measure nginx too, where it is installed")
	f.BoolVar(&p.openssl, "openssl", false, "measure plugins/openssl too, where it can be built (cgo, libcrypto)")
	f.StringVar(&p.watch, "watch", "", "shell COMMAND to run while each candidate has one more turn; it finds $NAME, $FRONT and $OTHERS")
	f.each(&p.builds, "tlsd", "NAME=PATH: measure this executable (default: tlsd is built)")
	f.each(&p.env, "env", "NAME=VALUE for tlsd's environment")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "tlsbench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.dir)
	candidates, err := p.candidates()
	if err != nil {
		return nil, err
	}
	for _, key := range p.keys {
		of, err := p.field(ctx, key, candidates)
		if err != nil {
			return nil, err
		}
		records = append(records, of...)
	}
	return records, nil
}

// candidates are the reference and each tier of each build.
func (p *serversPlan) candidates() ([]whole.Candidate, error) {
	if len(p.builds) == 0 && (len(p.tiers) > 0 || p.openssl) {
		path := filepath.Join(p.dir, "tlsd")
		if err := build(path); err != nil {
			return nil, err
		}
		p.builds = []string{"tlsd=" + path}
	}
	builds, err := pairsOf(p.builds)
	if err != nil {
		return nil, err
	}
	all := []whole.Candidate{whole.Self(partPlain, partPlain)}
	if p.http {
		all = append(all, whole.Self(partHTTP, partHTTP))
	}
	if path, err := exec.LookPath("nginx"); p.nginx && err == nil {
		all = append(all, whole.Nginx(path))
	}
	for _, tier := range p.tiers {
		if p.library {
			all = append(all, whole.Self("library "+tier, tier))
		}
		for _, b := range builds {
			all = append(all, whole.Tlsd(b.name, b.path, tier, p.env...))
		}
	}
	if plugin := filepath.Join(p.dir, "openssl"); p.openssl && buildPlugin(plugin, p.stdout) {
		for _, b := range builds {
			all = append(all, whole.Plugin(b.name, b.path, "openssl", plugin, p.env...))
		}
	}
	return all, nil
}

type pair struct{ name, path string }

func pairsOf(flags []string) (all []pair, err error) {
	for _, f := range flags {
		name, path, ok := strings.Cut(f, "=")
		if !ok {
			return nil, fmt.Errorf("flag -tlsd: %q is not NAME=PATH", f)
		}
		all = append(all, pair{name, path})
	}
	return all, nil
}

// buildPlugin makes the plugin that signs by OpenSSL, or says that it can't.
func buildPlugin(path string, stdout io.Writer) bool {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tlsd/tlsd").Output()
	if err == nil {
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/tlsd-keymanager-openssl")
		cmd.Dir = filepath.Join(strings.TrimSpace(string(out)), "plugins", "openssl")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		out, err = cmd.CombinedOutput()
	}
	if err != nil {
		fmt.Fprintf(stdout, "plugins/openssl is not measured: %v: %s\n", err, out)
	}
	return err == nil
}

// build makes tlsd as the Makefile does, but for the version in it.
func build(path string) error { return buildCommand(path, "cmd/tlsd") }

// buildSelf makes this program as it is not where "go run" made it: with the
// symbols that perf names functions by.
func buildSelf(path string) error { return buildCommand(path, "bench/cmd/tlsbench") }

func buildCommand(path, of string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "github.com/tlsd/tlsd/"+of)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", of, err, out)
	}
	return nil
}

// field measures servers with one type of key, in all ways.
func (p *serversPlan) field(ctx context.Context, key string, candidates []whole.Candidate) (records []report.Record, err error) {
	files, err := makeFiles(p.dir, key, p.entries)
	if err != nil {
		return nil, err
	}
	f, err := whole.NewField(ctx, files, func() (*exec.Cmd, error) { return self(partLoad) }, candidates)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, version := range p.versions {
		for _, resume := range p.resume {
			for _, callers := range p.callers {
				s := report.Setting{Part: report.Servers, Key: key, Version: version, Resume: resume == "yes", SNI: true, Entries: p.entries}
				if s.Callers, err = strconv.Atoi(callers); err != nil || s.Callers < 1 {
					return nil, fmt.Errorf("flag -callers: %q is not a number of clients", callers)
				}
				of, err := p.run(ctx, f, s)
				if err != nil {
					return nil, err
				}
				records = append(records, of...)
			}
		}
	}
	return records, nil
}

func (p *serversPlan) run(ctx context.Context, f *whole.Field, s report.Setting) ([]report.Record, error) {
	version, err := versionOf(s.Version)
	if err != nil {
		return nil, err
	}
	way := whole.Way{Version: version, Resume: s.Resume, Callers: s.Callers}
	rows, err := f.Run(ctx, way, p.rounds, p.turn)
	if err != nil {
		return nil, err
	}
	records := recordsOf(s, rows)
	printAll(p.stdout, report.Grids(records))
	if p.watch == "" {
		return records, nil
	}
	watched, err := f.Watch(ctx, way, p.turn, p.watch, p.stdout)
	for _, w := range watched {
		fmt.Fprintf(p.stdout, "%s: %d handshakes were watched\n", w.Name, w.Handshakes)
	}
	return records, err
}

func printAll(w io.Writer, grids []report.Grid) {
	for _, g := range grids {
		g.Print(w)
	}
}

func recordsOf(s report.Setting, rows []compare.Row) (records []report.Record) {
	for _, r := range rows {
		records = append(records, report.Record{Setting: s, Row: r})
	}
	return records
}

// makeFiles makes what servers are given in a directory of its own below dir.
func makeFiles(dir, key string, entries int) (material.Files, error) {
	dir = filepath.Join(dir, fmt.Sprintf("%s-%d", key, entries))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return material.Files{}, err
	}
	return material.Make(dir, material.Spec{Key: testca.KeyType(strings.ToUpper(key)), Entries: entries})
}
