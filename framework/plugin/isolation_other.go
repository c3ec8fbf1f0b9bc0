// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import pb "github.com/tlsd/tlsd/framework/plugin/proto"

// reportSelf fills in what is in force of this process: what only Linux has is
// not.
func reportSelf(m *pb.Isolation) {
	m.Dumpable = true
	m.CoreLimitZero = noCore()
}
