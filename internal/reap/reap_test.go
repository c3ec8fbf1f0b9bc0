// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reap

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOrphansAreReapedAndNobodyElse: this process adopts orphans as an init
// process does, while it waits for processes of its own.
func TestOrphansAreReapedAndNobodyElse(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); every(ctx, 200*time.Millisecond) }()
	defer func() { cancel(); <-done }()

	most := 0
	for range 20 {
		// A grandchild that outlives its parent and ends a little later.
		if err := exec.Command("/bin/sh", "-c", "sleep 0.1 & exit 3").Run(); exitCode(err) != 3 {
			t.Errorf("own child: %v, want exit status 3", err)
		}
		most = max(most, len(zombies(os.Getpid())))
		time.Sleep(50 * time.Millisecond)
	}
	if most == 0 {
		t.Error("no orphan was ever there: this tests nothing")
	}
	for end := time.Now().Add(10 * time.Second); len(zombies(os.Getpid())) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not reaped: %v", zombies(os.Getpid()))
		}
	}
}

func TestNoInitProcessReapsNothing(t *testing.T) {
	Orphans(t.Context()) // returns
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}
