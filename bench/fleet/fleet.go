// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet runs servers as processes of their own and counts the CPU time
// of each with all that it starts: front and key process together.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// How long a server may take to accept its first connection, and to end. A
// keystore of 10,000 entries takes its time.
const (
	patience     = 5 * time.Minute
	lastPatience = 20 * time.Second
)

// Server is a running server.
type Server struct {
	Addr    string        // host:port
	Started time.Duration // from the start of its process to the first connection

	cmd    *exec.Cmd
	exited chan struct{} // closed when it has, with why in err
	err    error
	stderr strings.Builder
}

// Start runs cmd, a server that is to listen on addr, and waits until it accepts
// connections there. What it writes to stderr is told if it doesn't.
func Start(ctx context.Context, cmd *exec.Cmd, addr string) (*Server, error) {
	s := &Server{Addr: addr, cmd: cmd, exited: make(chan struct{})}
	s.cmd.Stderr = &s.stderr
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.Started = time.Since(began)
	return s, nil
}

// FreeAddr returns an address of loopback that nobody listens on just now.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if c, err := net.Dial("tcp", s.Addr); err == nil {
			return c.Close()
		}
		select {
		case <-s.exited:
			return fmt.Errorf("%s ended before it listened: %w: %s", s.cmd.Path, s.err, strings.TrimSpace(s.stderr.String()))
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", s.cmd.Path, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Stop ends the server as an init system does, and waits until it has.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	select {
	case <-s.exited:
		return nil
	case <-time.After(lastPatience):
		return errors.Join(fmt.Errorf("%s does not end", s.cmd.Path), s.cmd.Process.Kill())
	}
}

// PIDs returns the process ids of the server and of all that it has started, the
// server's own first.
func (s *Server) PIDs() []int { return descend(s.cmd.Process.Pid) }
