// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestPanicEndsBySignal: a panic ends a program with the status of a wrong
// configuration, and with the environment of the units by SIGABRT.
func TestPanicEndsBySignal(t *testing.T) {
	const asked = "TLSD_TEST_PANIC"
	if os.Getenv(asked) != "" {
		go func() { panic("asked for") }()
		select {}
	}
	const setting = "GOTRACEBACK=crash"
	if unit, err := os.ReadFile("../../deploy/tlsd.service"); err != nil || !bytes.Contains(unit, []byte("\nEnvironment="+setting+"\n")) {
		t.Errorf("the unit has no %s: %v", setting, err)
	}
	for env, signaled := range map[string]bool{"GOTRACEBACK=": false, setting: true} {
		cmd := exec.Command("/bin/sh", "-c", `ulimit -c 0; exec "$0" -test.run=^TestPanicEndsBySignal$`, os.Args[0])
		cmd.Env = append(os.Environ(), env, asked+"=1", "TMPDIR="+t.TempDir()) // nobody tidies up
		err := cmd.Run()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() != signaled || !signaled && status.ExitStatus() != exitUsage {
			t.Errorf("%q: a panic ends with %v", env, err)
		}
	}
}
