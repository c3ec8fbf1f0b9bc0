// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
)

// passed is a socket that systemd opened for this process.
type passed struct {
	net.Listener
	name string // of the socket unit, or its FileDescriptorName=
}

// passedSockets returns the sockets of $LISTEN_FDS, and has no child be told of
// them.
func passedSockets() ([]passed, error) {
	var all []passed
	for _, f := range activation.Files(true) {
		// Accept=yes passes a connection instead, on which nothing can be accepted.
		listens, err := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
		if err != nil || listens == 0 {
			return nil, fmt.Errorf("systemd passed %q, which does not listen: the socket unit needs ListenStream= and Accept=no", f.Name())
		}
		ln, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("systemd passed %q: %w", f.Name(), err)
		}
		_ = f.Close() // ln has a descriptor of its own
		all = append(all, passed{ln, f.Name()})
	}
	return all, nil
}

// takePassed returns the socket that systemd opened at address, or nil.
func (s *sockets) takePassed(address string) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.systemd, func(p passed) bool { return listensAt(p.Addr(), address) })
	if i < 0 {
		return nil
	}
	ln := s.systemd[i].Listener
	s.systemd = slices.Delete(s.systemd, i, i+1)
	return ln
}

// giveBack closes ln, which systemd opened, and has the socket for whoever asks for
// its address next: systemd listens there all the same, so that none can be made.
func (s *sockets) giveBack(ln net.Listener) error {
	f, err := ln.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return ln.Close() // closed already, most likely
	}
	defer f.Close()
	if err := ln.Close(); err != nil { // first, so that nobody accepts by what f shares with it
		return err
	}
	again, err := net.FileListener(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.systemd = append(s.systemd, passed{again, f.Name()})
	return nil
}

// listensAt reports whether what a configuration calls address is where a socket
// listens. As with sockets of tlsd's own 0.0.0.0 is IPv4 alone, and an empty host
// whatever there is.
func listensAt(addr net.Addr, address string) bool {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		there, ok := addr.(*net.UnixAddr)
		return ok && filepath.Clean(there.Name) == filepath.Clean(path)
	}
	there, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	want, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || want.Port != there.Port {
		return false
	}
	if want.IP == nil {
		return there.IP.IsUnspecified()
	}
	return want.IP.Equal(there.IP) && want.Zone == there.Zone
}

// allTaken returns an error if systemd listens where no listener is: clients
// would wait there for ever.
func (s *sockets) allTaken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.systemd) == 0 {
		return nil
	}
	p := s.systemd[0]
	return fmt.Errorf("systemd passed the socket %q at %s, and no listener has that address: "+
		"listen there (--listen ADDR, listeners[].listen), or change ListenStream=", p.name, p.Addr())
}
