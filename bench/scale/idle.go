// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tlsd/tlsd/bench/fleet"
	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/whole"
)

// Idle is what connections cost that are open and say nothing.
type Idle struct {
	Name        string
	Connections int
	Each        int64 // bytes of memory of all processes
}

// dialers is how many connections are made at once.
const dialers = 32

// Idles measures the memory of a server with so many connections.
func Idles(ctx context.Context, c whole.Candidate, f material.Files, connections int) (i Idle, err error) {
	i = Idle{Name: c.Name, Connections: connections}
	client, err := load.Client(f.CA, material.Name, tls.VersionTLS13)
	if err != nil {
		return i, err
	}
	client.VerifyConnection = nil // seen often enough
	s, err := whole.Start(ctx, c, f)
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	// A server that has had as many handshakes at once as it will have.
	warm, err := open(ctx, s, client, min(connections, 10*dialers))
	warm.close()
	if err != nil {
		return i, err
	}
	before, err := settled(s)
	if err != nil {
		return i, err
	}
	conns, err := open(ctx, s, client, connections)
	defer conns.close()
	if err != nil {
		return i, err
	}
	after, err := settled(s)
	i.Each = (after.First + after.Others - before.First - before.Others) / int64(connections)
	return i, err
}

// settled reads a server's memory when what has just happened to it is over.
func settled(s *fleet.Server) (fleet.Memory, error) {
	time.Sleep(500 * time.Millisecond)
	return s.Memory()
}

type connections []net.Conn

func (c connections) close() {
	for _, conn := range c {
		conn.Close()
	}
}

// open makes connections. The caller closes those that it returns, on error too.
func open(ctx context.Context, s *fleet.Server, client *tls.Config, n int) (all connections, err error) {
	var mu sync.Mutex
	var callers sync.WaitGroup
	next := make(chan struct{}, n)
	for range n {
		next <- struct{}{}
	}
	close(next)
	for range dialers {
		callers.Go(func() {
			d := tls.Dialer{Config: client, NetDialer: &net.Dialer{Timeout: 10 * time.Second}}
			for range next {
				c, derr := d.DialContext(ctx, "tcp", s.Addr)
				mu.Lock()
				if derr == nil {
					all = append(all, c)
				} else if err == nil {
					err = fmt.Errorf("connection %d of %d: %w", len(all)+1, n, derr)
				}
				failed := err != nil
				mu.Unlock()
				if failed {
					return
				}
			}
		})
	}
	callers.Wait()
	return all, err
}
