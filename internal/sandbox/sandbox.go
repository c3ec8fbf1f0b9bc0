// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox has a process give up, for good, what it doesn't need of the
// machine: files outside some directories, programs, the network (Landlock). It
// decides nothing; who calls it knows what the process needs.
package sandbox

import "fmt"

// Rules are what a process keeps. The zero value keeps what is open already and
// nothing else. A rule names a file or directory as it is now, by its inode,
// and counts for all that is below a directory at any later time. What doesn't
// exist is left out.
type Rules struct {
	Read    []string // below these directories, files may be read
	Files   []string // these files may be read, until another takes their place
	Write   []string // below these directories, everything may be done but running it
	Execute []string // below these directories, programs may be run

	// Outside keeps the network, and other processes: TCP, signals, abstract
	// sockets.
	Outside bool
}

// State is what has become of an attempt to give something up.
type State struct {
	InForce string // "abi N", what the kernel holds us to; empty: nothing
	Missing string // why nothing is in force
}

func inForce(abi int) State { return State{InForce: fmt.Sprintf("abi %d", abi)} }

func missing(format string, args ...any) State {
	return State{Missing: fmt.Sprintf(format, args...)}
}
