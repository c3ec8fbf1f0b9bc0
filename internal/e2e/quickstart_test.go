// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestInterruptFromTheTerminalLeavesNothing: Ctrl-C reaches tlsd and its key
// process alike, and what "go run" started ends so too.
func TestInterruptFromTheTerminalLeavesNothing(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			d := start(t, "--keymanager", tier)
			d.awaitLog("listening")
			curl, rest, _ := strings.Cut(strings.TrimSpace(d.awaitPrinted()), " ")
			if curl != "curl" {
				t.Fatalf("standard output has %q", d.stdout)
			}
			out := mustCommand(t, testca.Tool(t, "curl"), append([]string{"-sS"}, strings.Fields(rest)...)...)
			if !strings.Contains(out, tier) {
				t.Errorf("the page doesn't name %s:\n%s", tier, out)
			}
			d.end(-d.cmd.Process.Pid, syscall.SIGINT)
		})
	}
}
