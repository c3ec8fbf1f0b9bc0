// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package ballast keeps Go's garbage collector from running all too often in a
// process of a small heap that makes much garbage.
package ballast

import "runtime"

// size is in bytes. It is never touched, and so takes up addresses and no memory;
// but what may lie about between two collections grows by as much.
const size = 16 << 20

// Keep keeps the collector from running every few dozen handshakes, and returns
// what lets it again. The heap that lives is a few megabytes in the front and in a
// key process, and may double, by Go's own rule, before it is collected; a
// handshake leaves 30 KB behind, so that marking the same few megabytes again cost
// more than a quarter of an ECDSA handshake. A percentage (GOGC) in its place would
// let a heap of many connections grow as much more.
//
// Who sets GOGC or GOMEMLIMIT has his reasons, and there is none then.
func Keep(getenv func(string) string) (drop func()) {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, size)
	return func() { runtime.KeepAlive(ballast) }
}
