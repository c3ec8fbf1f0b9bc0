// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// ListenError is returned by NewServer when the machine refuses an address.
type ListenError struct {
	Listen string // the Listener's
	Err    error
}

func (e *ListenError) Error() string {
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return fmt.Sprintf("listen on %q: address already in use: end what uses it, or choose another with --listen ADDR", e.Listen)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("listen on %q: permission denied: choose another with --listen ADDR, or grant it (ports below 1024 need CAP_NET_BIND_SERVICE)", e.Listen)
	case errors.Is(e.Err, syscall.EINVAL) && strings.HasPrefix(e.Listen, unixPrefix):
		return fmt.Sprintf("listen on %q: the path is too long for a socket: choose one of at most 107 bytes with --listen ADDR", e.Listen)
	}
	return fmt.Sprintf("listen on %q: %v: choose another with --listen ADDR", e.Listen, e.Err)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// Listen listens on address, host:port or unix:PATH, as a Server does whose
// Config.Bind is nil. A literal IPv4 address means IPv4 only, 0.0.0.0 too:
// firewalls count on it. A socket file that nobody listens on any more is
// replaced. An address that the machine refuses is a *[ListenError].
func Listen(ctx context.Context, address string) (net.Listener, error) {
	network, where := "tcp", address
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		network, where = "unix", path
		removeStale(path)
	} else if ap, err := netip.ParseAddrPort(address); err == nil && ap.Addr().Is4() {
		network = "tcp4"
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, network, where)
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // the address is named by ListenError
		}
		return nil, &ListenError{address, err}
	}
	return ln, nil
}

// bind listens on the address of a listener of c.
func (c Config) bind(ctx context.Context, address string) (net.Listener, error) {
	if c.Bind == nil {
		return Listen(ctx, address)
	}
	return c.Bind(ctx, address)
}

// removeStale removes the socket file at path if connecting to it is refused,
// which is what a process that was killed leaves.
func removeStale(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
		return
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // if it can't be removed, listening says why
	}
}
