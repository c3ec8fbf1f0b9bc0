// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// maxKeptFD bounds the descriptor numbers that are the same in the child.
const maxKeptFD = 255

// descriptors are the files of a Spec that are named by descriptor, such as
// /dev/stdin or a shell's <(…). They are kept open, unread by this process, so
// that each key process can be handed them.
type descriptors struct {
	byFD  map[int]*os.File  // by number in the child
	paths map[string]string // path in the Spec to path in the child
	first int               // the lowest number that is free in the child
}

// openDescriptors returns s with each path made absolute and each descriptor's
// path replaced by the child's, in which numbers below first are taken. The
// caller closes the descriptors. ctx bounds how long pipes are read.
func openDescriptors(ctx context.Context, s Spec, first int) (Spec, *descriptors, error) {
	d := &descriptors{byFD: map[int]*os.File{}, paths: map[string]string{}, first: first}
	out, err := mapPaths(s, func(path string) (string, error) { return d.path(ctx, path) })
	if err != nil {
		return Spec{}, nil, errors.Join(err, d.close())
	}
	return out, d, nil
}

// path returns how the child is to call path.
func (d *descriptors) path(ctx context.Context, path string) (string, error) {
	if there, ok := d.paths[path]; ok {
		return there, nil
	}
	n, ok := descriptorNumber(path)
	if !ok {
		return absolute(path)
	}
	for other, there := range d.paths {
		if m, _ := descriptorNumber(other); m == n {
			d.paths[path] = there
			return there, nil
		}
	}
	file, err := openDescriptor(ctx, n)
	if err != nil {
		return "", fmt.Errorf("pass %q to the key process: %w", path, err)
	}
	fd := d.place(n)
	d.byFD[fd] = file
	d.paths[path] = "/dev/fd/" + strconv.Itoa(fd)
	return d.paths[path], nil
}

// place chooses a number in the child: the same, if that is free, so that
// messages name what the user named.
func (d *descriptors) place(n int) int {
	if n >= d.first && n <= maxKeptFD && d.byFD[n] == nil {
		return n
	}
	for n = d.first; d.byFD[n] != nil; n++ {
	}
	return n
}

// known returns the child's path of a path that may be a descriptor's, which
// has to be among those that were opened.
func (d *descriptors) known(path string) (string, error) {
	if there, ok := d.paths[path]; ok {
		return there, nil
	}
	if _, ok := descriptorNumber(path); ok {
		return "", fmt.Errorf("pass %q to the key process: it was not named when the key process started", path)
	}
	return absolute(path)
}

// absolute refuses what the wire could not carry: there, paths are text.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil && !utf8.ValidString(abs) {
		err = errors.New("its name is not UTF-8; give the file another, or name a link to it")
	}
	if err != nil {
		return "", fmt.Errorf("pass %q to the key process: %w", path, err)
	}
	return abs, nil
}

// rename puts the paths that the user knows into an error of the child.
func (d *descriptors) rename(text string) string {
	for here, there := range d.paths {
		if here != there {
			whole := regexp.MustCompile(regexp.QuoteMeta(there) + `\b`)
			text = whole.ReplaceAllLiteralString(text, here)
		}
	}
	return text
}

// extraFiles lists what a child inherits from descriptor 3 on: fixed, and then
// the descriptors, with nil where a number is not taken.
func (d *descriptors) extraFiles(fixed ...*os.File) []*os.File {
	files := slices.Clone(fixed)
	for fd, f := range d.byFD {
		for len(files) <= fd-3 {
			files = append(files, nil)
		}
		files[fd-3] = f
	}
	return files
}

func (d *descriptors) close() error {
	var errs []error
	for _, f := range d.byFD {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// IsDescriptor reports whether path names a descriptor of the process that uses
// it, as /dev/stdin and a shell's <(…) do.
func IsDescriptor(path string) bool {
	_, ok := descriptorNumber(path)
	return ok
}

// descriptorNumber returns the descriptor of this process that path names.
func descriptorNumber(path string) (int, bool) {
	path = filepath.Clean(path)
	if path == "/dev/stdin" {
		return 0, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if rest, ok := strings.CutPrefix(path, dir); ok {
			n, err := strconv.Atoi(rest)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// mapPaths returns a copy of s in which to has replaced every path.
func mapPaths(s Spec, to func(string) (string, error)) (Spec, error) {
	var errs []error
	replace := func(path *string) {
		if *path == "" {
			return
		}
		p, err := to(*path)
		errs = append(errs, err)
		*path = p
	}
	s.Sources = slices.Clone(s.Sources)
	for i := range s.Sources {
		src := &s.Sources[i]
		src.Paths, src.Keys = slices.Clone(src.Paths), slices.Clone(src.Keys)
		for j := range src.Paths {
			replace(&src.Paths[j])
		}
		for _, pw := range passwordsOf(src) {
			replace(&pw.File)
		}
	}
	s.Files = slices.Clone(s.Files)
	for i := range s.Files {
		replace(&s.Files[i])
	}
	return s, errors.Join(errs...)
}

func passwordsOf(s *keymanager.Source) []*keymanager.PasswordRef {
	refs := []*keymanager.PasswordRef{&s.Store, &s.Key}
	for i := range s.Keys {
		refs = append(refs, &s.Keys[i].Password)
	}
	return refs
}
