// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// maxLinks bounds how many symbolic links are followed, as the kernel does.
const maxLinks = 40

// Above returns directories below which the files at paths will be found
// whatever becomes of them: renamed over, reached by other symbolic links in
// the same place, their directory removed and made anew. For each directory
// that holds a file, or a link on the way to it, that is the directory above,
// since a rule ends with the directory that it names; but a place where a file
// system is mounted stays, and so does a directory without one above.
//
// Where a file lies right below the root's child, that is the root. Relative
// paths count from the working directory as it is now.
func Above(paths ...string) []string {
	var dirs []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil { // a name like ".." says nothing of what is above
			path = abs
		}
		for _, stage := range stages(path) {
			dirs = append(dirs, lasting(filepath.Dir(stage)))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// stages returns path, and what it is after each link on the way is replaced by
// where it leads.
func stages(path string) []string {
	all := []string{filepath.Clean(path)}
	for range maxLinks {
		next, linked := follow(all[len(all)-1])
		if !linked {
			break
		}
		all = append(all, next)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		all = append(all, real)
	}
	return all
}

// follow replaces the first symbolic link in path by where it leads.
func follow(path string) (string, bool) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != filepath.Separator {
			continue
		}
		target, err := os.Readlink(path[:end])
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path[:end]), target)
		}
		return filepath.Join(target, path[end:]), true
	}
	return path, false
}

// lasting returns the nearest directory at or above the one above dir that is
// there.
func lasting(dir string) string {
	if !isMount(dir) {
		dir = filepath.Dir(dir)
	}
	for {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return real
		}
		if above := filepath.Dir(dir); above != dir {
			dir = above
			continue
		}
		return dir
	}
}
