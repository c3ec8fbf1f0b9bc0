// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

// beContainer: there are containers on Linux only.
func beContainer() {}
