// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func dup2(from, to int) error { return unix.Dup2(from, to) }

// harden gives up what a key process doesn't need, as far as this system lets
// it, and returns what could not be given up.
func harden() (failed []error) {
	unix.Umask(0o077)
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		failed = append(failed, fmt.Errorf("forbid core dumps: %w", err))
	}
	return failed
}
