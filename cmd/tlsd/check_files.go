// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// openFiles names the files with keys and passwords of a configuration that every
// user of the machine may read. It looks at modes only. Of files that belong together
// one holds the key, and which is not known here: they count if all are open.
func openFiles(eff *config.Effective) (notes []string) {
	for _, s := range eff.Keystores {
		if !slices.ContainsFunc(s.Paths, func(path string) bool { return !openToAll(path) }) {
			for _, path := range s.Paths {
				notes = append(notes, openNote(path, "a key"))
			}
		}
		refs := []keymanager.PasswordRef{s.Store, s.Key}
		for _, k := range s.Keys {
			refs = append(refs, k.Password)
		}
		for _, ref := range refs {
			if ref.File != "" && openToAll(ref.File) {
				notes = append(notes, openNote(ref.File, "a password"))
			}
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}

func openNote(path, what string) string {
	return fmt.Sprintf("everybody may read %q, which is to hold %s: run chmod 600 on it, or 640 where tlsd reads it by its group", path, what)
}

// openToAll reports whether the modes of a regular file and of the directories that
// lead to it let every user read it.
func openToAll(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 {
		return false
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}
