// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"golang.org/x/sys/unix"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// reportSelf fills in what the kernel says of this process.
func reportSelf(m *pb.Isolation) {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	m.Dumpable = err != nil || dumpable != 0
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	m.NoNewPrivs = err == nil && set == 1
	m.CoreLimitZero = noCore()
}
