// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peerOf says which process is at the other end of a unix socket, as the kernel
// knows it: for who listens, the one that connected, as it was then; for who
// connected, the one that listens, as it was when it began to.
func peerOf(conn *net.UnixConn) (peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return peer{}, err
	}
	return peer{uid: int(cred.Uid), pid: int(cred.Pid)}, nil
}

// standsForMany reports whether uid is the number by which the kernel calls all
// users that have none of their own in this process's user namespace.
func standsForMany(uid int) bool {
	number, _ := os.ReadFile("/proc/sys/kernel/overflowuid")
	known, _ := os.ReadFile("/proc/self/uid_map")
	return isOverflow(uid, string(number), string(known))
}

// isOverflow is standsForMany by what the files say. Where they say nothing there
// may be such users.
func isOverflow(uid int, number, known string) bool {
	const usual, all = "65534", "0 0 4294967295"
	return strconv.Itoa(uid) == cmp.Or(strings.TrimSpace(number), usual) && strings.Join(strings.Fields(known), " ") != all
}
