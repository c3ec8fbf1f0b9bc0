// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// frontMarker makes TestFrontToBeKilled a front, with the run directory that it
// names.
const frontMarker = "TLSD_TEST_FRONT"

// TestFrontToBeKilled is no test, but the front of the one below.
func TestFrontToBeKilled(t *testing.T) {
	dir := os.Getenv(frontMarker)
	if dir == "" {
		t.Skip("run by TestKilledFrontLeavesNoKeyProcess")
	}
	h := startHost(t, "", func(s *hostSetup) { s.opt.RunDir = dir })
	fmt.Printf("pid %d\n", h.Describe().PID)
	time.Sleep(time.Minute)
}

func TestKilledFrontLeavesNoKeyProcess(t *testing.T) {
	path, _ := testBinary(t)
	dir := shortTempDir(t)
	front := exec.Command(path, "-test.run=^TestFrontToBeKilled$")
	front.Env = append(os.Environ(), frontMarker+"="+dir, "TMPDIR="+dir) // it won't clean up
	stdout, err := front.StdoutPipe()
	if err == nil {
		err = front.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for lines := bufio.NewScanner(stdout); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "pid %d", &pid)
	}
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		t.Errorf("no key process %d", pid)
	}
	_ = front.Process.Kill()
	_ = front.Wait()
	if pid != 0 {
		eventually(t, "the end of the key process", func() bool { return !alive(pid) })
	}
}

// alive reports whether pid is a process that isn't a zombie: an orphan's are
// reaped by a stranger, some day.
func alive(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	stat := strings.TrimSpace(string(out))
	return stat != "" && stat[0] != 'Z'
}
