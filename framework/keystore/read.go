// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// file is one file of a keystore, read whole.
type file struct {
	path string
	data []byte
}

func readFiles(paths []string) ([]file, error) {
	if len(paths) == 0 {
		return nil, errors.New("no file is named")
	}
	files := make([]file, 0, len(paths))
	for _, path := range paths {
		data, err := readFile(path)
		if err != nil {
			if len(paths) > 1 {
				err = fmt.Errorf("file %q: %w", path, err)
			}
			return nil, err
		}
		files = append(files, file{path: path, data: data})
	}
	return files, nil
}

// readFile reads a regular file of at most maxFile bytes. It does not wait for
// the other end of a pipe, and looks at what it has opened, not at the path.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, openCause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, openCause(err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, errors.New("is a directory, not a file")
	case !mode.IsRegular():
		return nil, errors.New("is not a regular file but a pipe, device or socket, which can't be read again on reload: copy it to a file")
	case info.Size() > maxFile:
		return nil, &LimitError{What: "size of the file in bytes", Value: info.Size(), Max: maxFile}
	case info.Size() == 0:
		return nil, errEmpty
	}
	// A buffer of its size, and a little more to see the end: one allocation.
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, maxFile+1)); err != nil {
		return nil, openCause(err)
	}
	switch {
	case buf.Len() == 0: // it was emptied in between, or lies about its size
		return nil, errEmpty
	case buf.Len() > maxFile:
		return nil, &LimitError{What: "size of the file in bytes", Value: int64(buf.Len()), Max: maxFile}
	}
	return buf.Bytes(), nil
}

var errEmpty = errors.New("is empty")

// openCause drops operation and path, which the caller names, and says what to
// do about permissions.
func openCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w for uid %d: let that user read the file", err, os.Geteuid())
	}
	return err
}

// digest identifies the content of all files together.
func digest(files []file) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, f := range files {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f.data))))
		h.Write(f.data)
	}
	h.Sum(sum[:0])
	return sum
}
