// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// toBeKilled makes TestRunToBeKilled a run, and names what TestMain built.
const toBeKilled = "TLSD_TEST_RUN_TO_BE_KILLED"

// TestRunToBeKilled is no test, but the run of the one below.
func TestRunToBeKilled(t *testing.T) {
	if os.Getenv(toBeKilled) == "" {
		t.Skip("run by TestKilledRunLeavesNoProcess")
	}
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	l := startLineage(t, fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners: [{listen: %q}]\n", s.path, s.password, freeAddr(t)))
	l.upgrade()
	start(t, s.args()...)
	fmt.Println("serving")
	time.Sleep(time.Minute)
}

// TestKilledRunLeavesNoProcess that it started, nor one that an upgrade did.
func TestKilledRunLeavesNoProcess(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir() // all of the run's files
	run := exec.Command("/proc/self/exe", "-test.run=^TestRunToBeKilled$")
	run.Env = append(os.Environ(), toBeKilled+"="+binDir, "TMPDIR="+tmp)
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	serving := false
	for lines := bufio.NewScanner(out); !serving && lines.Scan(); {
		serving = lines.Text() == "serving"
	}
	fronts := func() []int { return pidsWith("\x00" + tmp + "/") }
	if n := len(fronts()); !serving || n < 2 {
		t.Errorf("it serves: %v, with %d processes", serving, n)
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	await(t, "end of all", fronts, func(pids []int) bool { return len(pids) == 0 })
}
