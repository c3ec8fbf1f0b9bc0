// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the length of sun_path without the final zero byte.
const maxSocketPath = 107

// childAttr puts a child into a process group of its own and has the kernel
// kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// selfPath is this very executable, even if the file has been replaced.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// pinnedPath returns what a child with the open file at descriptor fd is to
// execute, so that what runs is what was looked at.
func pinnedPath(fd int, _ string) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// awaitExit blocks until the process has ended and leaves it a zombie, so that
// its number, and that of its group, stay taken until it is reaped.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return true
		}
	}
}

// noNewPrivilegesForThread keeps the calling thread, and what it starts, from
// gaining privileges by executing something. Where that fails, the key process
// says so itself.
func noNewPrivilegesForThread() {
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
