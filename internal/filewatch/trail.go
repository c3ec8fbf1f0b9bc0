// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links one path may have, as in Linux.
const maxLinks = 40

// trails returns the directories in which something can happen that makes the
// files at paths others, as the file system is now: those that the files lie in,
// those that the symbolic links on the way lie in, and, for what isn't there, the
// nearest directory that is; each absolute and free of links. It returns the names
// in them that matter too, those of the directories themselves among them.
func trails(paths []string) (dirs []string, names map[string]bool) {
	names = make(map[string]bool)
	for _, path := range paths {
		for _, name := range trail(path) {
			names[name] = true
			dir := filepath.Dir(name)
			names[dir] = true
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), names
}

// trail walks to path as the kernel does and returns each name on the way that
// may come to stand for something else: links, the file itself, and the first
// name that isn't there. Directories on the way are left out: if one is moved,
// what is in it goes along, and is found missing by the next look.
func trail(path string) (names []string) {
	at := string(filepath.Separator)
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	rest := split(abs)
	for links := 0; len(rest) > 0; {
		name := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(name)
		switch {
		case err != nil:
			return append(names, name)
		case info.Mode()&os.ModeSymlink != 0:
			names = append(names, name)
			target, err := os.Readlink(name)
			if links++; err != nil || links > maxLinks {
				return names
			}
			if filepath.IsAbs(target) {
				at = string(filepath.Separator)
			}
			rest = append(split(target), rest...)
		case len(rest) == 0:
			names = append(names, name)
		default:
			at = name
		}
	}
	return names
}

// split returns the components of a path. Those that name the parent stay: behind
// a link they are not what cleaning makes of them.
func split(path string) []string {
	return slices.DeleteFunc(strings.Split(path, string(filepath.Separator)), func(s string) bool { return s == "" || s == "." })
}
