// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package soak holds a long test: a running tlsd under mixed load, while its
// keystore rotates, its key process is killed and frozen, and it is told to
// reload. "make soak" runs it, by TLSD_SOAK, which says for how long ("30m").
package soak
