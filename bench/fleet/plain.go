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
	"net/http"
	"time"
)

// ServePlain is the reference: crypto/tls as a Go program uses it, in one
// process with its key, and nothing else. It serves until ctx ends.
func ServePlain(ctx context.Context, addr, certFile, keyFile string) error {
	config, err := plainConfig(certFile, keyFile)
	if err != nil {
		return err
	}
	return ServeConfig(ctx, addr, config)
}

// ServeHTTP is net/http with the same: what it costs that a connection is
// served, beyond its handshake. It serves until ctx ends.
func ServeHTTP(ctx context.Context, addr, certFile, keyFile string) error {
	config, err := plainConfig(certFile, keyFile)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, TLSConfig: config, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("net/http server: %w", err)
	}
	return nil
}

func plainConfig(certFile, keyFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("plain server: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// ServeConfig makes the handshakes of config and does nothing else. It serves
// until ctx ends.
func ServeConfig(ctx context.Context, addr string, config *tls.Config) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve: %w", err)
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
