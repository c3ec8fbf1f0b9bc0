// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package scale measures how tlsd grows: with the entries of its keystore, with
// connections that are open, and what handshakes notice of a reload.
package scale

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tlsd/tlsd/bench/fleet"
	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/whole"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// Growth is what a keystore of some size costs.
type Growth struct {
	Entries   int
	Start     time.Duration // from the start of the process to the first connection
	Reload    time.Duration // from SIGHUP to the first handshake with a new certificate, all entries being new
	Selection time.Duration // of the last entry by its name, in the tier
	Front     int64         // bytes of memory that are the process's own, after the reload
	Key       int64
}

// Grow measures tlsd with keystores of one size, made below dir.
func Grow(ctx context.Context, c whole.Candidate, tier *keymanager.Tier, dir string, entries int) (g Growth, err error) {
	g.Entries = entries
	f, err := material.Make(dir, material.Spec{Entries: entries, Renewed: true})
	if err != nil {
		return g, err
	}
	if g.Selection, err = selection(ctx, tier, f); err != nil {
		return g, err
	}
	s, err := whole.Start(ctx, c, f)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	g.Start = s.Started
	r, err := newReload(s, f)
	if err != nil {
		return g, err
	}
	if g.Reload, err = r.await(ctx, 2*time.Millisecond); err != nil {
		return g, err
	}
	m, err := s.Memory()
	g.Front, g.Key = m.First, m.Others
	return g, err
}

// selection measures Select of a tier that is called directly.
func selection(ctx context.Context, tier *keymanager.Tier, f material.Files) (each time.Duration, err error) {
	m, err := tier.Open(ctx, keymanager.Env{Builders: []keymanager.Source{{
		Paths: []string{f.Store}, Store: keymanager.PasswordRef{File: f.PasswordFile},
	}}})
	if err != nil {
		return 0, err
	}
	h := &keymanager.Hello{
		Role: keymanager.RoleServer, ServerName: material.Name, Version: tls.VersionTLS13,
		Auth: keymanager.AuthECDSA | keymanager.AuthRSA, Schemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}
	const times = 2000
	began := time.Now()
	for range times {
		if _, err := m.Select(ctx, h); err != nil {
			return 0, fmt.Errorf("select: %w", err)
		}
	}
	return time.Since(began) / times, nil
}

// reload replaces a keystore under a server that runs.
type reload struct {
	server *fleet.Server
	files  material.Files
	client *tls.Config
	before string // the leaf's DER
}

func newReload(s *fleet.Server, f material.Files) (*reload, error) {
	client, err := load.Client(f.CA, material.Name, tls.VersionTLS13)
	if err != nil {
		return nil, err
	}
	r := &reload{server: s, files: f, client: client}
	r.before, err = r.leaf()
	return r, err
}

// leaf returns the certificate that is served, in DER.
func (r *reload) leaf() (string, error) {
	c, err := tls.Dial("tcp", r.server.Addr, r.client)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return string(c.ConnectionState().PeerCertificates[0].Raw), nil
}

// await replaces the keystore, has the server reload, and returns how long it
// was until it served the new certificate, which it looks at so often.
func (r *reload) await(ctx context.Context, every time.Duration) (time.Duration, error) {
	if err := os.Rename(r.files.Renewed, r.files.Store); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := r.server.Reload(); err != nil {
		return 0, err
	}
	for {
		leaf, err := r.leaf()
		if took := time.Since(began); err != nil || leaf != r.before {
			return took, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(every):
		}
	}
}
