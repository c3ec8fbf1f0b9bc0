// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package lockdir

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

func TestWhatNobodyHoldsIsRemoved(t *testing.T) {
	base := t.TempDir()
	held, err := Make(base, "tlsd-")
	if err != nil {
		t.Fatal(err)
	}
	killed, err := Make(base, "tlsd-")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(killed.Path, "socket"))
	killed.lock.Close() // as the kernel does it for a process that is killed
	other := filepath.Join(base, "tlsd-demo-1")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "tlsd-2")
	write(t, file)

	next, err := Make(base, "tlsd-")
	if err != nil {
		t.Fatal(err)
	}
	if exists(killed.Path) {
		t.Error("the directory of the one that was killed is still there")
	}
	for _, path := range []string{held.Path, next.Path, other, file} {
		if !exists(path) {
			t.Errorf("%q was removed", path)
		}
	}
	if err := held.Remove(); err != nil || exists(held.Path) {
		t.Errorf("removed: %v", err)
	}
}

// The umask is the process's: no other test may run beside this one.
func TestPrivateWhateverTheUmask(t *testing.T) {
	base := t.TempDir()
	for _, umask := range []int{0, 0o777} {
		saved := syscall.Umask(umask)
		d, err := Make(base, "tlsd-")
		syscall.Umask(saved)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(d.Path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("umask %#o: mode %v, %v", umask, info.Mode(), err)
		}
	}
}

// Those that start at the same time don't remove each other's.
func TestManyAtOnce(t *testing.T) {
	base := t.TempDir()
	dirs := make([]*Dir, 32)
	var wg sync.WaitGroup
	for i := range dirs {
		wg.Go(func() {
			d, err := Make(base, "tlsd-")
			if err != nil {
				t.Error(err)
				return
			}
			write(t, filepath.Join(d.Path, "socket"))
			dirs[i] = d
		})
	}
	wg.Wait()
	for _, d := range dirs {
		if d != nil && !exists(filepath.Join(d.Path, "socket")) {
			t.Errorf("%q lost its content", d.Path)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
