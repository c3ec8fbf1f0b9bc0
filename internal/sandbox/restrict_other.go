// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

// ABI returns 0: Landlock is Linux's.
func ABI() int { return 0 }

// Restrict gives up nothing.
func Restrict(Rules) State { return missing("this system has no Landlock") }
