// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// Where there is no directory for a socket, the life line of a key process is a
// pair of sockets, and the connection too. Nobody else has either end, so that
// nothing has to be proven over it. go-plugin, which knows nothing but sockets
// with a name, has no part in it; only plugins built from this package know it.
const (
	// inheritMarker is set in the environment of a child that is to use it.
	inheritMarker = "TLSD_KEYMANAGER_INHERIT"
	// inheritReady is what such a child prints in place of go-plugin's line.
	inheritReady = "tlsd|inherited|3|grpc"
)

// inheritEnv is what go-plugin would put into the environment, as far as it
// matters.
func inheritEnv() []string {
	return []string{inheritMarker + "=1", cookieName + "=" + cookieValue}
}

// openPair opens a pair of connected sockets, the child's and ours.
func openPair() (p pipe, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return pipe{}, fmt.Errorf("open a pair of sockets: %w", err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	return pipe{r: os.NewFile(uintptr(fds[0]), "life line"), w: os.NewFile(uintptr(fds[1]), "life line")}, nil
}

// dialInherited starts the process and makes the connection of the life line.
func (p *process) dialInherited(ctx context.Context) (*grpc.ClientConn, error) {
	if err := p.child.Start(ctx); err != nil {
		return nil, err
	}
	line, err := net.FileConn(p.child.life)
	if err != nil {
		return nil, err
	}
	_ = p.child.life.Close() // the connection has a copy, which ends it
	conn, err := clientOver(line)
	if err != nil {
		return nil, errors.Join(err, line.Close())
	}
	p.hangUp = func() {
		_ = conn.Close()
		_ = line.Close() // gRPC may never have had it
	}
	return conn, nil
}

// serveInherited serves s over the life line until that ends, and says on ready
// when it does.
func serveInherited(s *server, ready io.Writer, line *lifeLine) error {
	conn, err := net.FileConn(line.file)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	pb.RegisterKeyManagerServer(g, s)
	if _, err := fmt.Fprintln(ready, inheritReady); err != nil {
		return err
	}
	_ = g.Serve(newOnlyConn(conn)) // until the front is gone
	time.AfterFunc(endTime, func() { os.Exit(0) })
	g.Stop()
	return nil
}

// onlyConn is a listener that accepts one connection, and ends with it.
type onlyConn struct {
	net.Conn
	taken atomic.Bool
	ended chan struct{}
	end   func()
}

func newOnlyConn(c net.Conn) *onlyConn {
	o := &onlyConn{Conn: c, ended: make(chan struct{})}
	o.end = sync.OnceFunc(func() { close(o.ended) })
	return o
}

// Accept returns the connection, and then waits for its end.
func (o *onlyConn) Accept() (net.Conn, error) {
	if !o.taken.Swap(true) {
		return o, nil
	}
	<-o.ended
	return nil, net.ErrClosed
}

// Close closes the connection, and with it the listener.
func (o *onlyConn) Close() error {
	defer o.end()
	return o.Conn.Close()
}

// Addr returns the connection's own address.
func (o *onlyConn) Addr() net.Addr { return o.LocalAddr() }
