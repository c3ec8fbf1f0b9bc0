// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ServePlain is the reference: crypto/tls as a Go program uses it, in one
// process with its key, and nothing else. It serves until ctx ends.
func ServePlain(ctx context.Context, addr, certFile, keyFile string) error {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("plain server: %w", err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("plain server: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("plain server: %w", err)
		}
		go drain(ctx, tls.Server(c, config))
	}
}

// drain makes the handshake, as any server bounded in time, and reads until the
// client has closed.
func drain(ctx context.Context, c *tls.Conn) {
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if c.HandshakeContext(ctx) == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}
