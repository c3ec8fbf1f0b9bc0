// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// WriteProgram writes a file that is to be run. While it is written nothing of
// this process is started: a child would have the file open for writing for a
// moment too, and who runs it then is told "text file busy".
func WriteProgram(t testing.TB, path string, content []byte, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

// StartGuarded starts a program as the first of a process group, and beside it one
// that waits for the end of this process, however it comes, and kills the group
// then: go test kills what takes too long, and no Cleanup runs. PDEATHSIG would not
// reach what an upgrade starts.
func StartGuarded(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := exec.Command("/bin/sh", "-c", `read nothing; kill -s KILL -- "-$0"`, fmt.Sprint(cmd.Process.Pid))
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of a terminal's reach
	_, err := guard.StdinPipe()                             // which ends with this process
	if err == nil {
		err = guard.Start()
	}
	if err != nil {
		_ = cmd.Process.Kill()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = guard.Process.Kill()
		_ = guard.Wait()
	})
}
