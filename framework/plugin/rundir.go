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

	"github.com/tlsd/tlsd/internal/lockdir"
)

// maxSocketName is the length of the longest name that go-plugin gives a socket
// in its directory, with the separator.
const maxSocketName = len("/plugin4294967295")

// runBases says where run directories may lie.
type runBases struct {
	dirs   []string // best first
	ours   string   // of these, which is made if it is missing; the others are other people's to make
	anyway bool     // whether a key process is started even if none will do
}

// makeRunDir makes a directory for one start of a key process, which only this
// user may enter, whatever the umask, and removes those that killed processes
// left beside it. It lies in the first of bases that will do. The error names
// each of them with its reason. The caller removes the directory.
func makeRunDir(bases runBases) (*lockdir.Dir, error) {
	var tried []string
	for _, b := range bases.dirs {
		if b == bases.ours {
			_ = os.Mkdir(b, 0o700) // makePrivateIn says if it isn't there
		}
		dir, err := makePrivateIn(b)
		if err == nil {
			return dir, nil
		}
		tried = append(tried, err.Error())
	}
	return nil, fmt.Errorf("%w: %s; name a writable directory by run_dir", ErrRunDir, strings.Join(tried, "; "))
}

// defaultRunBases is where run directories go if nothing is said: what systemd
// made for the service, the user's own, the temporary one.
func defaultRunBases(getenv func(string) string) runBases {
	bases := runBases{anyway: true}
	if first, _, _ := strings.Cut(getenv("RUNTIME_DIRECTORY"), ":"); first != "" {
		bases.dirs = append(bases.dirs, first)
	}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" {
		bases.ours = filepath.Join(dir, "tlsd")
		bases.dirs = append(bases.dirs, bases.ours)
	}
	if dir := getenv("TMPDIR"); dir != "" {
		bases.dirs = append(bases.dirs, dir)
	}
	bases.dirs = append(bases.dirs, "/tmp")
	return bases
}

func makePrivateIn(base string) (*lockdir.Dir, error) {
	abs, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	if err := checkRunBase(abs); err != nil {
		return nil, err
	}
	dir, err := lockdir.Make(abs, "tlsd-")
	if err != nil {
		return nil, err
	}
	if len(dir.Path)+maxSocketName > maxSocketPath {
		err := fmt.Errorf("%q is too long for a socket in it: use a directory of at most %d bytes",
			base, maxSocketPath-maxSocketName-(len(dir.Path)-len(abs)))
		return nil, errors.Join(err, dir.Remove())
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
