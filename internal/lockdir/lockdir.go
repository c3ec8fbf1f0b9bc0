// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package lockdir makes private temporary directories that outlive a process
// which is killed only until the next one comes by.
//
// Whoever makes such a directory holds a lock on it. What lies beside it, is
// named like it, and is locked by nobody belonged to a process that is gone.
package lockdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir is a directory that only this user may enter, and the lock on it.
type Dir struct {
	Path string
	lock *os.File
}

// Make makes a directory in base, whose name is prefix and a number, with mode
// 0700 whatever the umask. First it removes those of this user that nobody
// holds any more. The caller removes the result.
func Make(base, prefix string) (*Dir, error) {
	removeStale(base, prefix)
	for {
		d, err := locked(base, prefix)
		if err != nil || d != nil {
			return d, err
		}
	}
}

// Remove removes the directory with all that is in it. What can't be removed
// now, a later Make removes.
func (d *Dir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// locked makes and locks a directory. Between the two, another process may take
// it for stale and remove it; then it returns nil.
func locked(base, prefix string) (*Dir, error) {
	path, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, err
	}
	d, err := lock(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, errors.Join(err, os.Remove(path))
	case !d.still():
		return nil, d.lock.Close()
	}
	return d, nil
}

func lock(path string) (*Dir, error) {
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), f.Close())
	}
	return &Dir{path, f}, nil
}

// still reports whether the directory that is locked is the one at its path.
func (d *Dir) still() bool {
	a, errA := os.Lstat(d.Path)
	b, errB := d.lock.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func removeStale(base, prefix string) {
	entries, _ := os.ReadDir(base) // what can't be read has nothing of ours, or Make says so
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), prefix)
		if ours && e.IsDir() && strings.Trim(number, "0123456789") == "" {
			removeUnheld(filepath.Join(base, e.Name()))
		}
	}
}

// removeUnheld removes a directory of this user that nobody has locked.
func removeUnheld(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !mine(info) {
		return
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.RemoveAll(path)
	}
}

func mine(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
