// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cloudflare/tableflip"

	"github.com/tlsd/tlsd/framework"
)

// sockets are the listening sockets of this process: those of the process whose
// place it takes, those that systemd passed, and else its own. Bind is called by
// one goroutine at a time.
type sockets struct {
	flip    *tableflip.Upgrader
	serving chan struct{} // closed when this process serves, and so can be followed by another

	mu      sync.Mutex          // guards what follows
	systemd []passed            // not asked for yet, or given up
	files   []*net.UnixListener // whose file ends with them, unless another process has them

	handedOver atomic.Bool // another process has the sockets
}

// Who made a socket. Sockets keep that word on their way to the next process,
// since only a file that tlsd made is tlsd's to remove.
const (
	madeByTlsd    = "tlsd"
	madeBySystemd = "systemd"
)

// newSockets takes over what was passed to this process. It can be called once.
func newSockets() (_ *sockets, err error) {
	if os.Args[0], err = ownPath(); err != nil { // which tableflip starts
		return nil, err
	}
	if _, err := os.Getwd(); err != nil { // an upgrade starts the next process there
		return nil, fmt.Errorf("the working directory is gone, or this user can't read it; start tlsd in another, such as /: %w", err)
	}
	flip, err := tableflip.New(tableflip.Options{UpgradeTimeout: upgradeTimeout})
	if err != nil {
		return nil, fmt.Errorf("take the sockets over: %w", err)
	}
	if flip.HasParent() { // what tableflip talks by, and leaves open for every child
		syscall.CloseOnExec(3)
		syscall.CloseOnExec(4)
	}
	s := &sockets{flip: flip, serving: make(chan struct{})}
	s.systemd, err = passedSockets()
	return s, err
}

// ownPath is where this program was started from, and where an upgrade puts the
// next one. A link is not resolved: it may be what an upgrade replaces.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	named, err := exec.LookPath(os.Args[0])
	if err != nil || !sameFile(named, self) { // argv[0] may be anything
		return self, nil
	}
	return filepath.Abs(named)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Bind is a framework.BindFunc.
func (s *sockets) Bind(ctx context.Context, address string) (net.Listener, error) {
	for _, maker := range []string{madeByTlsd, madeBySystemd} {
		ln, err := s.flip.Listener(maker, address)
		if err != nil {
			return nil, &framework.ListenError{Listen: address, Err: err}
		}
		if ln != nil && maker == madeByTlsd && !listens(ln) {
			_ = ln.Close()
			continue
		}
		if ln != nil {
			return s.bound(maker, ln), nil
		}
	}
	if ln := s.takePassed(address); ln != nil {
		return s.add(madeBySystemd, address, ln)
	}
	ln, err := framework.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return s.add(madeByTlsd, address, ln)
}

// listens says whether a socket that was passed on still takes connections. One
// that a reload gave up is passed on all the same: tableflip forgets none.
func listens(ln net.Listener) bool {
	if _, ok := ln.(*net.UnixListener); ok {
		path := ln.Addr().String()
		_, err := os.Lstat(path) // its file went with it
		return err == nil || strings.HasPrefix(path, "@")
	}
	raw, err := ln.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	takes := 0
	err = raw.Control(func(fd uintptr) { takes, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN) })
	return err == nil && takes != 0
}

// add has the next process inherit ln.
func (s *sockets) add(maker, address string, ln net.Listener) (net.Listener, error) {
	if err := s.flip.AddListener(maker, address, ln.(tableflip.Listener)); err != nil {
		_ = ln.Close()
		return nil, &framework.ListenError{Listen: address, Err: err}
	}
	return s.bound(maker, ln), nil
}

func (s *sockets) bound(maker string, ln net.Listener) net.Listener {
	if file, ok := ln.(*net.UnixListener); ok && maker == madeByTlsd {
		file.SetUnlinkOnClose(s.ours())
		s.mu.Lock()
		s.files = append(s.files, file)
		s.mu.Unlock()
	}
	return bound{Listener: ln, maker: maker, all: s, closing: new(atomic.Bool)}
}

// bound is a listener of which tableflip keeps a second descriptor. The kernel
// would go on to take connections for it that nobody accepts.
type bound struct {
	net.Listener
	maker   string
	all     *sockets
	closing *atomic.Bool // this process closes it
}

// Accept says of a socket that this process shuts that it is closed. It is not
// quite yet, and the kernel's word for it is EINVAL.
func (b bound) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil && b.closing.Load() {
		err = net.ErrClosed
	}
	return conn, err
}

// Close ends listening at the socket, whoever has a descriptor of it, unless
// others listen there: the process that took over, or systemd.
func (b bound) Close() error {
	b.closing.Store(true)
	if b.maker == madeBySystemd {
		return b.all.giveBack(b.Listener)
	}
	if b.all.ours() {
		b.shut()
	}
	return b.Listener.Close()
}

// shut has the kernel take no more connections. Where it can't, no process can
// take over any more.
func (b bound) shut() {
	raw, err := b.Listener.(syscall.Conn).SyscallConn()
	if err != nil {
		return // closed already
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Shutdown(int(fd), syscall.SHUT_RD) })
	if err == nil && failed != nil {
		b.all.stop()
	}
}

// stop ends an upgrade that is under way and lets none begin.
func (s *sockets) stop() {
	s.flip.Stop()
	<-s.flip.Exit()
}

// ours says that nobody else listens at the sockets that tlsd made: the process
// before this one does until this one serves, and goes on if it never does.
func (s *sockets) ours() bool {
	select {
	case <-s.serving:
		return !s.handedOver.Load()
	default:
		return !s.flip.HasParent()
	}
}

// own notes that this process serves, and that the files end with it.
func (s *sockets) own() {
	close(s.serving)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		f.SetUnlinkOnClose(true)
	}
}

// leave leaves the sockets and their files to the process that took over.
func (s *sockets) leave() {
	s.handedOver.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		f.SetUnlinkOnClose(false)
	}
}
