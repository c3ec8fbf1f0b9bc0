// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// maxLanes bounds the lanes of one key process.
const maxLanes = 64

// openLanes makes pairs of sockets and returns our ends and those of the child.
func openLanes() (ours, theirs []*os.File, err error) {
	for range min(4*runtime.GOMAXPROCS(0), maxLanes) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, fmt.Errorf("make a lane: %w", err)
		}
		ours = append(ours, os.NewFile(uintptr(fds[0]), "lane"))
		theirs = append(theirs, os.NewFile(uintptr(fds[1]), "lane"))
	}
	return ours, theirs, nil
}
