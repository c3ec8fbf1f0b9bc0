// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// harden gives up what a key process doesn't need and returns what could not be
// given up. Each is worth having without the others.
func harden() (failed []error) {
	step := func(what string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	unix.Umask(0o077)
	step("forbid core dumps", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	// Closes /proc/PID/mem and ptrace to other processes of this user. This
	// process's own /proc/self/fd stays usable: the kernel lets a thread group
	// look at itself.
	step("forbid being debugged", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	step("forbid new privileges", noNewPrivileges())
	return failed
}

// noNewPrivileges applies to all threads, since a program could be started from
// any. In a program with cgo only whoever starts it can see to that.
func noNewPrivileges() error {
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && set == 1 {
		return nil
	}
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno == syscall.ENOTSUP {
		return errors.New("not possible from within a program with cgo")
	}
	if errno != 0 {
		return errno
	}
	return nil
}
