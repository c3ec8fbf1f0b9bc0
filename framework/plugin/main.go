// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// exitUsage is the status of a program that was given something wrong.
const exitUsage = 2

// Main is the first statement in main, and in TestMain, of a program that embeds
// tiers: the program is started once more to be the key process, and Main is
// where that one branches off. In any other process it returns at once, having
// done nothing.
//
// In the key process it serves the tier that it was started for and never
// returns: it exits with status 0 when its front is gone or asks for it, and
// with 2 and a line on standard error where the tier is not among tiers. It
// takes the process over: standard output is standard error from then on,
// signals are the front's business, and the process drops what it doesn't need
// (core dumps, being debugged by its own user, new privileges).
func Main(tiers ...keymanager.Tier) {
	name, ok := os.LookupEnv(childMarker)
	if !ok {
		return
	}
	for _, t := range tiers {
		if t.Name == name {
			os.Exit(runChild(t, name))
		}
	}
	fmt.Fprintf(os.Stderr, "no key manager %q in this executable: it has %s\n", name, tierNames(tiers))
	os.Exit(exitUsage)
}

// IsChild reports whether this process was started to be a key process and has
// not become one, because Main or Serve was not called.
func IsChild() bool {
	_, ok := os.LookupEnv(childMarker)
	return ok
}

func tierNames(tiers []keymanager.Tier) string {
	if len(tiers) == 0 {
		return "none"
	}
	names := make([]string, len(tiers))
	for i, t := range tiers {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
