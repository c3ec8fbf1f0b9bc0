// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package memory makes TLS handshakes in memory: client and server in one
// process, the tier called directly. It is the OpenJDK's microbenchmark
// SSLHandshake for Go, so that the two can be compared.
package memory

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// Spec says what handshakes are made.
type Spec struct {
	Tier    *keymanager.Tier // nil: crypto/tls with its key
	Version uint16
	Resume  bool
	SNI     bool // of an entry that there is
}

// Pair is a client and a server. It is not safe for concurrent use.
type Pair struct {
	client, server *tls.Config
	resumes        bool // a full handshake is an error
	close          func() error
}

// NewPair opens the tier. The caller closes the Pair.
func NewPair(ctx context.Context, f material.Files, s Spec) (*Pair, error) {
	name := "127.0.0.1" // addresses are not sent
	if s.SNI {
		name = material.Name
	}
	client, err := load.Client(f.CA, name, s.Version)
	if err != nil {
		return nil, err
	}
	p := &Pair{client: client}
	if p.server, p.close, err = server(ctx, f, s.Tier); err != nil {
		return nil, err
	}
	if s.Resume {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		if err := p.Handshake(); err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.resumes = true
	}
	return p, nil
}

func server(ctx context.Context, f material.Files, tier *keymanager.Tier) (*tls.Config, func() error, error) {
	if tier == nil {
		cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("load certificate: %w", err)
		}
		return &tls.Config{Certificates: []tls.Certificate{cert}}, func() error { return nil }, nil
	}
	keys, err := framework.Open(ctx, framework.Config{
		KeyManager: tier.Name, Tiers: []keymanager.Tier{*tier}, InProcess: true,
		Keystores: []keymanager.Source{{Paths: []string{f.Store}, Store: keymanager.PasswordRef{File: f.PasswordFile}}},
	})
	if err != nil {
		return nil, nil, err
	}
	return keys.TLSConfig(), keys.Close, nil
}

// Close closes the tier.
func (p *Pair) Close() error { return p.close() }

var errNotResumed = errors.New("the handshake was a full one, where it was to be resumed")

// Handshake makes one handshake and ends the connection. Where sessions are
// resumed the client has read its next ticket then.
func (p *Pair) Handshake() error {
	near, far := pipe()
	served := make(chan error, 1)
	go func() { served <- serve(tls.Server(far, p.server)) }()
	client := tls.Client(near, p.client)
	err := client.Handshake()
	if err == nil && p.client.ClientSessionCache != nil {
		_, err = io.Copy(io.Discard, client)
	}
	near.Close()
	if err := errors.Join(err, <-served); err != nil {
		return fmt.Errorf("handshake in memory: %w", err)
	}
	if p.resumes && !client.ConnectionState().DidResume {
		return errNotResumed
	}
	return nil
}

func serve(c *tls.Conn) error {
	defer c.NetConn().Close()
	return c.Handshake()
}
