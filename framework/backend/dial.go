// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Defaults where a configuration says nothing.
const (
	defaultConnectTimeout = 5 * time.Second
	defaultFirstByte      = 60 * time.Second
)

// dialer opens connections to one target.
type dialer struct {
	target  Target
	timeout time.Duration
}

// dial connects within d.timeout, whatever network and address a transport
// thinks it is dialling.
func (d dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	nd := net.Dialer{Timeout: d.timeout}
	return nd.DialContext(ctx, d.target.Network, d.target.Address)
}

// clientTLS returns a copy of cfg that verifies target, or the system's trust
// in target's name where cfg is nil.
func clientTLS(cfg *tls.Config, target Target) *tls.Config {
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	cfg = cfg.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = target.Host
	}
	return cfg
}

// orDefault returns d, or def where d is zero.
func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
