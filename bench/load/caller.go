// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// patience bounds one connection: a server that hangs is to fail the run.
const patience = 10 * time.Second

// errNotResumed fails a run of resumed handshakes that isn't one.
var errNotResumed = errors.New("the handshake was a full one, where it was to be resumed")

// caller makes handshakes one after another.
type caller struct {
	addr    string
	config  *tls.Config
	resumes bool // a full handshake is an error
	took    []time.Duration
}

// newCaller makes a caller that has seen that the server is the one that is
// meant, and that has a session to resume where it is to.
func newCaller(ctx context.Context, j Job) (*caller, error) {
	config, err := Client(j.CA, j.Name, j.Version)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c := &caller{addr: j.Addr, config: config}
	if _, err := c.call(ctx); err != nil {
		return nil, fmt.Errorf("load: first handshake: %w", err)
	}
	// Verified once is enough: from here on clients cost as little as they can.
	config.VerifyConnection = nil
	if !j.Resume {
		return c, nil
	}
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	_, err = c.call(ctx)
	c.resumes = true
	return c, err
}

// call makes one connection and returns how long dial and handshake took. It
// waits until the server has closed the connection too: so the server has
// finished the handshake, tickets have been read, and the port that stays
// behind in TIME_WAIT is the server's.
func (c *caller) call(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	if err := raw.SetDeadline(began.Add(patience)); err != nil {
		return 0, err
	}
	conn := tls.Client(raw, c.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if c.resumes && !conn.ConnectionState().DidResume {
		return 0, errNotResumed
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, conn)
	return took, err
}
