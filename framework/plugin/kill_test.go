// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestProcessThatLeavesItsGroupIsKilled: it goes into the front's and stops itself.
func TestProcessThatLeavesItsGroupIsKilled(t *testing.T) {
	src, _ := pairSource(t, testca.NewRoot(t, testca.Spec{}), "a.example")
	said := filepath.Join(t.TempDir(), "pid")
	settings, err := json.Marshal(map[string]string{"do": "leave-group", "file": said})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(said); err == nil {
				time.Sleep(100 * time.Millisecond) // until it is stopped
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err = Start(ctx, Command{Tier: "rowdy"}, Spec{Sources: []keymanager.Source{src}, Settings: settings}, HostOptions{RunDir: shortTempDir(t)})
	if err == nil {
		t.Fatal("it opened")
	}
	b, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the process", func() bool { return !alive(pid) })
}

// TestReapingWithoutAWaitThatLeavesNumbers is how systems other than Linux reap: the
// process comes to its own end, and what it left in its group is killed after it.
func TestReapingWithoutAWaitThatLeavesNumbers(t *testing.T) {
	left := filepath.Join(t.TempDir(), "pid")
	c := newChild(t.Context(), nil, exec.Command("/bin/sh", "-c", `sleep 600 & echo $! >"$0"; sleep 0.2; exit 3`, left), nil)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.pid = c.cmd.Process.Pid
	c.reap(func(int) bool { return false })
	if c.state == nil || c.state.Error() != "exit status 3" {
		t.Errorf("it ended with %v", c.state)
	}
	b, err := os.ReadFile(left)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b[:len(b)-1]))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of what it left", func() bool { return !alive(pid) })
}
