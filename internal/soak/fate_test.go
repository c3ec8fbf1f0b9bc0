// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"sync"
	"syscall"
	"testing"
	"time"
)

// fate is what befalls tlsd.
type fate struct {
	d    *daemon
	k    *keystore
	load *load

	striking             sync.Mutex // one at a time
	mu                   sync.Mutex // guards what follows
	rotations, reloads   int
	kills, freezes, lost int
	longest              time.Duration // until it was ready again
}

func (f *fate) rotate() {
	f.k.rotate()
	f.count(&f.rotations)
}

func (f *fate) reload() {
	if syscall.Kill(f.d.pid, syscall.SIGHUP) == nil {
		f.count(&f.reloads)
	}
}

func (f *fate) count(n *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

// strike sends a signal to the key process and waits until another has taken its
// place and tlsd is ready.
func (f *fate) strike(sig syscall.Signal) {
	f.striking.Lock()
	defer f.striking.Unlock()
	pids := f.d.keyProcesses()
	if len(pids) != 1 {
		return // it is being replaced, by a reload
	}
	began := time.Now()
	end := f.load.openGap()
	defer end()
	if syscall.Kill(pids[0], sig) != nil {
		return
	}
	f.count(map[syscall.Signal]*int{syscall.SIGKILL: &f.kills, syscall.SIGSTOP: &f.freezes}[sig])
	for deadline := began.Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now := f.d.keyProcesses()
		if len(now) == 1 && now[0] != pids[0] && f.d.ready() {
			break
		}
		if time.Now().After(deadline) {
			f.count(&f.lost)
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.longest = max(f.longest, time.Since(began))
}

func (f *fate) table() string {
	return row("rotations", f.rotations) + row("reloads", f.reloads) + row("kills", f.kills) + row("freezes", f.freezes) +
		row("longest until ready", f.longest.Round(time.Millisecond)) + "\n"
}

func (f *fate) judge(t *testing.T) {
	t.Helper()
	if f.rotations == 0 || f.reloads == 0 || f.kills == 0 || f.freezes == 0 {
		t.Errorf("too short: %d rotations, %d reloads, %d kills, %d freezes", f.rotations, f.reloads, f.kills, f.freezes)
	}
	if f.lost > 0 {
		t.Errorf("%d times the key process did not come back within a minute", f.lost)
	}
}
