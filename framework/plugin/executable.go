// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Command says which program is to run as key process.
type Command struct {
	Tier   string   // that it is to serve
	Path   string   // of an executable; empty: this very one
	SHA256 string   // of the executable, hex; empty: not checked, with a warning that says how
	Args   []string // after the program's name
}

// executable is a program, looked at once and kept open, so that each start
// runs the same file whatever becomes of its path.
type executable struct {
	path string
	file *os.File // nil: this very executable
	sum  string   // expected SHA-256, hex in lower case; empty: none
}

// openExecutable opens the command's program and refuses one that can't or
// shouldn't run; its content is compared by verify. The caller closes the
// result.
func openExecutable(cmd Command) (*executable, error) {
	if cmd.Path == "" {
		path, err := selfPath()
		return &executable{path: path}, err
	}
	path, err := filepath.Abs(cmd.Path)
	if err != nil {
		return nil, err
	}
	sum := strings.ToLower(cmd.SHA256)
	if b, err := hex.DecodeString(sum); err != nil || sum != "" && len(b) != sha256.Size {
		return nil, fmt.Errorf("plugin %q: SHA-256 %q: want %d hexadecimal digits", path, cmd.SHA256, 2*sha256.Size)
	}
	// O_NONBLOCK, for a named pipe must not hold us up.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", path, pathCause(err))
	}
	e := &executable{path: path, file: file, sum: sum}
	if err := e.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %q: %w", path, err), file.Close())
	}
	return e, nil
}

// check refuses what is no executable file and what others could have written.
func (e *executable) check() error {
	info, err := e.file.Stat()
	if err != nil {
		return pathCause(err)
	}
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return errors.New("is a directory, not an executable file")
	case !mode.IsRegular():
		return errors.New("is not a regular file")
	case mode.Perm()&0o111 == 0:
		return fmt.Errorf("is not executable (mode %#o); run chmod +x on it, if it is the plugin", mode.Perm())
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("everybody may write to it (mode %#o); run chmod o-w on it", mode.Perm())
	case mode.Perm()&0o020 != 0: // even if its SHA-256 is given: a script is read while it runs
		return fmt.Errorf("its group may write to it (mode %#o); run chmod g-w on it", mode.Perm())
	}
	if e.sum != "" {
		return nil // what another puts in its place doesn't run
	}
	return checkParents(e.path)
}

// checkParents refuses a file whose place anybody could give to another: there
// is a directory above it that everybody may write to, and that isn't sticky.
func checkParents(path string) error {
	dir, err := filepath.EvalSymlinks(path)
	for err == nil && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		var info fs.FileInfo
		if info, err = os.Stat(dir); err != nil {
			break
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("everybody may put another in its place: directory %q has mode %#o; run chmod o-w on it or give the plugin's SHA-256", dir, info.Mode().Perm())
		}
	}
	if err != nil {
		return fmt.Errorf("look at the directories above it: %w", pathCause(err))
	}
	return nil
}

// verify compares the content with the expected sum, if there is one. It is
// asked before each start, since a file can be overwritten in place.
func (e *executable) verify() error {
	if e.sum == "" {
		return nil
	}
	found, err := e.digest()
	if err == nil && found != e.sum {
		err = fmt.Errorf("wrong SHA-256: expected %s, found %s; is it the version that was meant?", e.sum, found)
	}
	if err != nil {
		return fmt.Errorf("plugin %q: %w", e.path, err)
	}
	return nil
}

func (e *executable) digest() (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(e.file, 0, math.MaxInt64)); err != nil {
		return "", pathCause(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// explain says why the kernel refused to execute the program.
func (e *executable) explain(err error) error {
	if e.file == nil {
		return fmt.Errorf("execute %s: %w", e.path, pathCause(err))
	}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("plugin %q: %s", e.path, e.describeFormat())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("plugin %q: the interpreter or dynamic loader that it names is missing", e.path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("plugin %q: not allowed to execute it; look at its mode and owner, and whether its file system is mounted noexec", e.path)
	}
	return fmt.Errorf("plugin %q: execute: %w", e.path, pathCause(err))
}

// describeFormat says what a file is that the kernel takes for no executable.
func (e *executable) describeFormat() string {
	self, selfErr := elf.Open("/proc/self/exe")
	other, err := elf.NewFile(e.file)
	if selfErr == nil {
		defer self.Close()
	}
	switch {
	case err == nil && selfErr == nil && other.Machine != self.Machine:
		return fmt.Sprintf("wrong architecture: built for %s, this machine runs %s", machine(other), machine(self))
	case err == nil:
		return fmt.Sprintf("built for %s %s, which doesn't run here", other.OSABI, machine(other))
	}
	head := make([]byte, 2)
	if _, err := e.file.ReadAt(head, 0); err == nil && bytes.Equal(head, []byte("#!")) {
		return "the interpreter in its first line is no program for this machine"
	}
	return "neither a program for this machine nor a script that begins with #!"
}

func machine(f *elf.File) string {
	return strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
}

func (e *executable) close() error {
	if e.file == nil {
		return nil
	}
	return e.file.Close()
}

// pathCause drops what an *os.PathError says beside its cause, since callers
// name operation and path themselves.
func pathCause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
