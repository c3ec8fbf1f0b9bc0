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
	"syscall"

	"github.com/cloudflare/tableflip"

	"github.com/tlsd/tlsd/framework"
)

// sockets are the listening sockets of this process: those of the process whose
// place it takes, those that systemd passed, and else its own. It is not for
// concurrent use, but for the closing of what Bind returned.
type sockets struct {
	flip    *tableflip.Upgrader
	serving chan struct{}       // closed when this process serves, and so can be followed by another
	systemd []passed            // not asked for yet
	files   []*net.UnixListener // whose file ends with them, unless another process has them
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
		file.SetUnlinkOnClose(true)
		s.files = append(s.files, file)
	}
	return bound{ln, s}
}

// bound is a listener of which tableflip keeps a second descriptor. The kernel
// would go on to take connections for it that nobody accepts.
type bound struct {
	net.Listener
	all *sockets
}

// Close closes the listener. From then on no process can take over.
func (b bound) Close() error {
	b.all.stop()
	return b.Listener.Close()
}

// stop ends an upgrade that is under way and lets none begin.
func (s *sockets) stop() {
	s.flip.Stop()
	<-s.flip.Exit()
}

// leaveFiles leaves the files of sockets to the process that took over.
func (s *sockets) leaveFiles() {
	for _, f := range s.files {
		f.SetUnlinkOnClose(false)
	}
}
