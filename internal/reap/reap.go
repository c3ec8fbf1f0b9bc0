// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package reap collects orphans where this process is the init process of a
// container: the kernel gives it every process whose parent has ended, and keeps
// what is left of that one, once it has ended too, until somebody waits for it.
package reap

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Patience is how long what is left of a process has to lie around before it is
// taken for an orphan's. A program waits for the processes that it has started
// itself, and is never that late.
const Patience = 5 * time.Second

// Orphans collects orphans until ctx ends, if this process is the init process.
// It takes no exit status from those who wait for processes of their own.
func Orphans(ctx context.Context) {
	if os.Getpid() == 1 {
		every(ctx, Patience)
	}
}

// every collects what has lain around for patience.
func every(ctx context.Context, patience time.Duration) {
	ended := make(chan os.Signal, 1) // one is enough: it says that there is something to look at
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	var seen map[zombie]bool
	for {
		if len(seen) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-ended:
			}
		}
		now := zombies(os.Getpid())
		for z := range now {
			if seen[z] {
				_, _ = syscall.Wait4(z.pid, nil, syscall.WNOHANG, nil)
			}
		}
		seen = now
		select {
		case <-ctx.Done():
			return
		case <-time.After(patience):
		}
	}
}

// zombie is what is left of a process: its number may be another's later, but
// not with the same start.
type zombie struct {
	pid   int
	start string // in ticks since the machine's
}

// zombies returns the children of parent that have ended and that nobody has
// waited for.
func zombies(parent int) map[zombie]bool {
	found := map[zombie]bool{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		pid, rest, _ := strings.Cut(string(stat), " ")
		f := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:]) // its name may hold anything
		const state, ppid, start = 0, 1, 19                            // of proc_pid_stat(5), less three
		if len(f) <= start || f[state] != "Z" || f[ppid] != strconv.Itoa(parent) {
			continue
		}
		if n, err := strconv.Atoi(pid); err == nil {
			found[zombie{n, f[start]}] = true
		}
	}
	return found
}
