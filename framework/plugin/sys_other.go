// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package plugin

import (
	"os"
	"syscall"
)

// maxSocketPath is the length of sun_path without the final zero byte.
const maxSocketPath = 103

// childAttr puts a child into a process group of its own. That it ends with its
// front is up to the life line alone here.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// selfPath is the path of this executable; a replaced file would be what runs.
func selfPath() (string, error) { return os.Executable() }

// pinnedPath returns the path: an open file can't be executed here, so that a
// file replaced after it was looked at would be what runs.
func pinnedPath(_ int, path string) string { return path }

// awaitExit reports that there is no such wait here: the process is reaped first,
// and its group is killed right after.
func awaitExit(int) bool { return false }

// noNewPrivilegesForThread does nothing: there is no such thing here.
func noNewPrivilegesForThread() {}
