// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
	"github.com/tlsd/tlsd/bench/jdk"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/memory"
	"github.com/tlsd/tlsd/bench/report"
)

// memoryPlan is what is measured in memory.
type memoryPlan struct {
	ways
	entries, sni []string
	jdk          bool
	warm         time.Duration
	dir          string
	stdout       io.Writer
}

// inMemory measures handshakes in memory as args say and prints what it finds.
func inMemory(ctx context.Context, args []string, stdout io.Writer) (records []report.Record, err error) {
	p, f := &memoryPlan{stdout: stdout}, flags("memory")
	f.ways(&p.ways, "p256")
	f.list(&p.entries, "entries", "1", "entries of the keystore")
	f.list(&p.sni, "sni", "yes", "yes, no: whether the client names the last entry")
	f.BoolVar(&p.jdk, "jdk", false, "measure the key managers of each installed JDK too")
	f.DurationVar(&p.warm, "warm", 25*time.Second, "CPU time that a JDK gets to compile itself")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "tlsbench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.dir)
	for _, key := range p.keys {
		for _, entries := range p.entries {
			n, err := strconv.Atoi(entries)
			if err != nil {
				return nil, fmt.Errorf("flag -entries: %q is no number", entries)
			}
			of, err := p.store(ctx, key, n)
			if err != nil {
				return nil, err
			}
			records = append(records, of...)
		}
	}
	return records, nil
}

// store measures all ways of handshakes with one keystore.
func (p *memoryPlan) store(ctx context.Context, key string, entries int) (records []report.Record, err error) {
	files, err := makeFiles(p.dir, key, entries)
	if err != nil {
		return nil, err
	}
	for _, version := range p.versions {
		for _, resume := range p.resume {
			for _, sni := range p.sni {
				s := report.Setting{Part: report.Memory, Key: key, Version: version, Resume: resume == "yes", SNI: sni == "yes", Callers: 1, Entries: entries}
				rows, err := p.run(ctx, files, s)
				if err != nil {
					return nil, err
				}
				of := recordsOf(s, rows)
				printAll(p.stdout, report.Grids(of))
				records = append(records, of...)
			}
		}
	}
	return records, nil
}

// run compares all candidates in one way.
func (p *memoryPlan) run(ctx context.Context, files material.Files, s report.Setting) (rows []compare.Row, err error) {
	candidates, err := p.candidates(files, s)
	if err != nil {
		return nil, err
	}
	var contenders []compare.Contender
	for _, c := range candidates {
		process, err := memory.Start(c.cmd)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, process.Close()) }()
		if err := process.Warm(ctx, c.warm); err != nil {
			return nil, err
		}
		contenders = append(contenders, compare.Contender{Name: c.name, Measure: func(ctx context.Context) (compare.Sample, error) {
			return process.Turn(ctx, p.turn)
		}})
	}
	return compare.Run(ctx, p.rounds, contenders)
}

// inProcess is a candidate of handshakes in memory.
type inProcess struct {
	name string
	cmd  *exec.Cmd
	warm time.Duration // CPU time before its turns count
}

// candidates are the reference, the tiers, and the key managers of JDKs.
func (p *memoryPlan) candidates(files material.Files, s report.Setting) (all []inProcess, err error) {
	version, err := versionOf(s.Version)
	if err != nil {
		return nil, err
	}
	for _, tier := range append([]string{"", report.Derivation}, p.tiers...) {
		job, err := json.Marshal(memoryJob{Files: files, Tier: tier, Version: version, Resume: s.Resume, SNI: s.SNI})
		if err != nil {
			return nil, err
		}
		cmd, err := self(partMemory, string(job))
		if err != nil {
			return nil, err
		}
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		name := tier
		if tier == "" {
			name = partPlain
		}
		all = append(all, inProcess{name: name, cmd: cmd})
	}
	if !p.jdk {
		return all, nil
	}
	for _, j := range jdk.Installed() {
		for _, algorithm := range []string{jdk.SunX509, jdk.PKIX} {
			cmd, err := j.Handshakes(p.dir, jdk.Job{
				Store: files.Store, Password: material.Password, CA: files.CA,
				Algorithm: algorithm, Version: "TLSv" + s.Version, Resume: s.Resume, Name: serverName(s),
			})
			if err != nil {
				return nil, err
			}
			all = append(all, inProcess{name: strings.Join([]string{"JDK", j.Version, algorithm}, " "), cmd: cmd, warm: p.warm})
		}
	}
	return all, nil
}

func serverName(s report.Setting) string {
	if s.SNI {
		return material.Name
	}
	return ""
}
