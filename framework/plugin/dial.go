// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// dialEndpoint connects to the endpoint at path and asks it what it is. Nothing
// is sent before it is known to be run by the owner of the socket, or by root.
// On error nothing is left.
func dialEndpoint(ctx context.Context, path string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, p, err := dialOwner(ctx, path)
	if err != nil {
		return nil, err
	}
	l, err := linkOver(conn, p.pid)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.socket = path
	if err := l.introduce(ctx, fmt.Sprintf("the endpoint at %q", path)); err != nil {
		switch {
		case l.gone():
			err = fmt.Errorf("%w: %q: it closed the connection; does it admit user %s (--allow-user)?",
				errClosed, path, describeUser(os.Getuid(), userName(os.Getuid())))
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("%w: %q: it is there, but does not answer; is it still opening its keystores?", ErrUnreachable, path)
		}
		l.end(err)
		return nil, err
	}
	return l, nil
}

// errClosed is an ErrUnavailable of an endpoint that is ending, or doesn't admit
// this user.
var errClosed = fmt.Errorf("%w: endpoint", ErrUnavailable)

// dialOwner connects to the socket at path, if its owner serves it.
func dialOwner(ctx context.Context, path string) (*net.UnixConn, peer, error) {
	named := path
	path, err := filepath.EvalSymlinks(path) // who may put another there is asked of where it is
	if err != nil {
		return nil, peer{}, unreachable(named, pathCause(err))
	}
	owner, err := socketOwner(path)
	if err != nil {
		return nil, peer{}, err
	}
	raw, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, peer{}, unreachable(path, socketCause(err))
	}
	conn := raw.(*net.UnixConn)
	p, err := peerOf(conn)
	switch {
	case err != nil:
	case p.uid != owner && p.uid != 0:
		err = fmt.Errorf("it belongs to user %s and user %s serves it, who is not believed", describeUser(owner, userName(owner)), describeUser(p.uid, userName(p.uid)))
	case standsForMany(p.uid):
		err = fmt.Errorf("user %d serves it, which may be any user that has no number in this user namespace; run the endpoint as one that has", p.uid)
	}
	if err != nil {
		return nil, peer{}, errors.Join(fmt.Errorf("endpoint %q: %w", path, err), conn.Close())
	}
	return conn, p, nil
}

// socketOwner returns whose socket is at path, where nobody else could have put
// it there.
func socketOwner(path string) (int, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, unreachable(path, pathCause(err))
	case info.Mode().Type() != fs.ModeSocket:
		return 0, fmt.Errorf("endpoint %q: it is no socket", path)
	}
	owner := ownerOf(info)
	if err := checkSocketDir(filepath.Dir(path), owner); err != nil {
		return 0, fmt.Errorf("endpoint %q: %w", path, err)
	}
	return owner, nil
}

// unreachable says why there is nobody to talk to, and what to do: it may be
// there a moment later.
func unreachable(path string, err error) error {
	hint := "is tlsd keymanager serve running?"
	if errors.Is(err, fs.ErrPermission) {
		hint = "this user has to be in the group of the socket and of its directory"
	}
	return fmt.Errorf("%w: %q: %w; %s", ErrUnreachable, path, err, hint)
}

// linkOver makes a link of a connection. Each ends with the other.
func linkOver(conn net.Conn, pid int) (*link, error) {
	told := &tellingConn{Conn: conn, ended: make(chan struct{})}
	client, err := clientOver(told)
	if err != nil {
		return nil, err
	}
	l := newLink(client, pid)
	context.AfterFunc(l.ctx, func() {
		_ = client.Close()
		_ = told.Close() // gRPC may never have had it
	})
	go func() {
		select {
		case <-told.ended:
			l.end(errors.New("the connection to it ended"))
		case <-l.ctx.Done():
		}
	}()
	return l, nil
}

// tellingConn is a connection that tells of its end.
type tellingConn struct {
	net.Conn
	once  sync.Once
	ended chan struct{}
}

// Close closes the connection; gRPC calls it however the connection ended.
func (c *tellingConn) Close() error {
	defer c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
