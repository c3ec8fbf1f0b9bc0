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
	"syscall"
	"time"
)

// Modes of an endpoint's socket and of its directory, if that is made here. The
// group is the key process's, or the directory's where that has the setgid bit:
// the one that the front is in. Who of it is admitted is said by its user.
const (
	socketMode    fs.FileMode = 0o660
	socketDirMode fs.FileMode = 0o750
)

// SocketError says why an endpoint's socket can't be made where nothing that was given
// is wrong: somebody serves it, or the machine refuses.
type SocketError struct {
	Path string
	Err  error
}

func (e *SocketError) Error() string { return fmt.Sprintf("socket %q: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *SocketError) Unwrap() error { return e.Err }

// listenEndpoint listens on a unix socket at path, in place of one that nobody
// serves any more. Closing the listener removes the file.
func listenEndpoint(path string) (*net.UnixListener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %q: a path of more than %d bytes is none; choose a shorter one", path, maxSocketPath)
	}
	dir := filepath.Dir(path)
	switch err := os.Mkdir(dir, socketDirMode); {
	case err == nil:
		// The umask may have taken something away; the group's bit is kept.
		if err := os.Chmod(dir, socketDirMode|keptSetgid(dir)); err != nil {
			return nil, &SocketError{path, err}
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, &SocketError{path, fmt.Errorf("make its directory: %w", pathCause(err))}
	}
	if err := checkSocketDir(dir, os.Getuid()); err != nil {
		return nil, fmt.Errorf("socket %q: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, &SocketError{path, socketCause(err)}
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(&SocketError{path, pathCause(err)}, l.Close())
	}
	return l, nil
}

func keptSetgid(dir string) fs.FileMode {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	return info.Mode() & fs.ModeSetgid
}

// checkSocketDir refuses a directory in which somebody else than root and user
// could put a socket of his own.
func checkSocketDir(dir string, user int) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("its directory: %w", pathCause(err))
	case !info.IsDir():
		return fmt.Errorf("%q is no directory", dir)
	}
	switch perm := info.Mode().Perm(); {
	case perm&0o002 != 0:
		return fmt.Errorf("everybody may write to its directory %q (mode %#o), and so put another in its place; choose a directory of its own, which is made if it is missing", dir, perm)
	case perm&0o020 != 0:
		return fmt.Errorf("its group may write to its directory %q (mode %#o), and so put another in its place; run chmod g-w on it", dir, perm)
	}
	if owner := ownerOf(info); owner != 0 && owner != user {
		return fmt.Errorf("its directory %q belongs to user %s; it has to be root's or %s's", dir, describeUser(owner, userName(owner)), describeUser(user, userName(user)))
	}
	return nil
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// removeStale removes a socket that nobody serves.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &SocketError{path, pathCause(err)}
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %q: there is a file that is no socket; remove it or choose another path", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return &SocketError{path, errors.New("another process serves it; end that one first")}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return &SocketError{path, fmt.Errorf("not known whether another process serves it: %w", socketCause(err))}
	}
	if err := os.Remove(path); err != nil {
		return &SocketError{path, pathCause(err)}
	}
	return nil
}

// socketCause drops what net says beside the cause.
func socketCause(err error) error {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err
	}
	return err
}
