// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Source is one keystore builder: where a keystore lies and how it is opened.
// It holds paths, and passwords only where they were given by value.
type Source struct {
	Paths []string      // one file, or PEM files that belong together; absolute, or /dev/fd/N
	Type  string        // auto, pkcs12, jks, jceks or pem; empty: auto
	Store PasswordRef   // the store's password
	Key   PasswordRef   // the keys' password; zero: the store's
	Keys  []KeyPassword // passwords of single keys, by alias without case
}

// KeyPassword is the password of one entry's key.
type KeyPassword struct {
	Alias    string
	Password PasswordRef
}

// PasswordRef says where a password is to be had. The zero value is no
// password at all, which is not the same as an empty one.
type PasswordRef struct {
	File  string  // read anew at each use
	Value *Secret // given by environment or property; used where File is empty
}

// Secret is a password that does not print: fmt, JSON, YAML and zap's reflection
// show a mask. Convert it with string(s) where it is used.
type Secret string

const mask = "[secret]"

// String returns a mask.
func (Secret) String() string { return mask }

// Format writes a mask, for verbs too that fmt would answer with the value in an
// error, such as %d.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, mask) }

// MarshalText returns a mask.
func (Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// Name returns how the source is called in messages: its paths.
func (s Source) Name() string { return strings.Join(s.Paths, ",") }

// PasswordFiles returns the paths of all password files, those of single keys
// among them.
func (s Source) PasswordFiles() []string {
	var files []string
	add := func(p PasswordRef) {
		if p.File != "" {
			files = append(files, p.File)
		}
	}
	add(s.Store)
	add(s.Key)
	for _, k := range s.Keys {
		add(k.Password)
	}
	return files
}

// Password returns the spellings of the store's password that are to be tried,
// in order, read anew at each call. Nil means that there is none; an empty
// password is one empty spelling. The caller owns and wipes them.
func (s Source) Password() ([][]byte, error) { return s.Store.Read() }

// KeyPassword returns the spellings of the password of the key at alias, as
// Password does: the entry's own, else the one for keys, else the store's.
func (s Source) KeyPassword(alias string) ([][]byte, error) {
	for _, k := range s.Keys {
		if strings.EqualFold(k.Alias, alias) {
			return k.Password.Read()
		}
	}
	if !s.Key.IsZero() {
		return s.Key.Read()
	}
	return s.Store.Read()
}

// IsZero reports whether there is no password.
func (p PasswordRef) IsZero() bool { return p.File == "" && p.Value == nil }

var byteOrderMark = []byte("\xef\xbb\xbf")

// maxPassword bounds a password file, in bytes: a keystore given as password
// file by mistake is refused and not read whole.
const maxPassword = 64 << 10

// Read returns the spellings to try: without a byte order mark and one trailing
// line end (LF or CRLF), and, where there is such a line end, the exact bytes
// too. Nil where p is zero.
func (p PasswordRef) Read() ([][]byte, error) {
	var raw []byte
	switch {
	case p.File != "":
		b, err := readPasswordFile(p.File)
		if err != nil {
			return nil, err
		}
		raw = bytes.TrimPrefix(b, byteOrderMark)
	case p.Value != nil:
		raw = []byte(string(*p.Value))
	default:
		return nil, nil
	}
	trimmed := bytes.TrimSuffix(raw, []byte("\n"))
	if len(trimmed) < len(raw) {
		trimmed = bytes.TrimSuffix(trimmed, []byte("\r"))
		return [][]byte{bytes.Clone(trimmed), raw}, nil
	}
	return [][]byte{raw}, nil
}

// readPasswordFile goes by what it reads and not by the file's size, which a
// pipe or /dev/fd/N doesn't have.
func readPasswordFile(path string) ([]byte, error) {
	b, err := readAtMost(path, maxPassword+1)
	if err != nil {
		return nil, fmt.Errorf("read password file %q: %w", path, err)
	}
	if len(b) > maxPassword {
		return nil, fmt.Errorf("read password file %q: over %d bytes are too long for a password; is it the keystore?", path, maxPassword)
	}
	return b, nil
}

// readAtMost returns the first limit bytes of a file. Its errors don't name the
// path, which the caller does. A pipe that has a name would keep each reading
// waiting for somebody to write, and so a reload for ever.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathCause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, pathCause(err)
	}
	if info.Mode()&os.ModeNamedPipe != 0 && !IsDescriptor(path) {
		return nil, errors.New("is a named pipe, which can't be read again on reload: copy it to a file, or pass it as /dev/stdin")
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return b, pathCause(err)
}

// IsDescriptor reports whether path names an open file of this process, as
// /dev/stdin and /dev/fd/N do. What lies behind it is not replaced by another
// file, and may be readable once only.
func IsDescriptor(path string) bool {
	path = filepath.Clean(path)
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// pathCause drops operation and path of an *os.PathError.
func pathCause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
