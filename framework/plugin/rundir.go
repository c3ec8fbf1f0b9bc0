// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketName is the length of the longest name that go-plugin gives a socket
// in its directory, with the separator.
const maxSocketName = len("/plugin4294967295")

// makeRunDir makes a directory for one start of a key process, which only this
// user may enter, whatever the umask. It lies in base, or, where base is empty,
// in the first default that is writable. The caller removes it.
func makeRunDir(base string) (string, error) {
	bases := []string{base}
	if base == "" {
		bases = defaultRunBases(os.Getenv)
	}
	var tried []string
	for _, b := range bases {
		dir, err := makePrivateIn(b)
		if err == nil {
			return dir, nil
		}
		tried = append(tried, err.Error())
	}
	return "", fmt.Errorf("%w: %s; name a writable directory by run_dir", ErrRunDir, strings.Join(tried, "; "))
}

// defaultRunBases lists where run directories go if nothing is said, best
// first: what systemd made for the service, the user's own, the temporary one.
func defaultRunBases(getenv func(string) string) []string {
	var bases []string
	if first, _, _ := strings.Cut(getenv("RUNTIME_DIRECTORY"), ":"); first != "" {
		bases = append(bases, first)
	}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" {
		bases = append(bases, filepath.Join(dir, "tlsd"))
	}
	if dir := getenv("TMPDIR"); dir != "" {
		bases = append(bases, dir)
	}
	return append(bases, "/tmp")
}

// makePrivateIn makes a directory with a fresh name and mode 0700 in base, which
// it makes too where only base itself is missing.
func makePrivateIn(base string) (string, error) {
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	abs, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	if err := checkRunBase(abs); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(abs, "tlsd-")
	if err != nil {
		return "", err
	}
	err = os.Chmod(dir, 0o700)
	if err == nil && len(dir)+maxSocketName > maxSocketPath {
		err = fmt.Errorf("%q is too long for a socket in it: use a directory of at most %d bytes",
			base, maxSocketPath-maxSocketName-(len(dir)-len(abs)))
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// checkRunBase refuses a directory in which others could put their own in place
// of ours.
func checkRunBase(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%q is no directory", dir)
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%q is writable by everybody and not sticky", dir)
	}
	return nil
}
