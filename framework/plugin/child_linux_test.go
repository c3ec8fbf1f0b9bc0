// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
)

// asNobody returns what makes a child run as an unprivileged user, and that
// user: this one, if it is none.
func asNobody() (*syscall.SysProcAttr, int) {
	if os.Getuid() != 0 {
		return nil, os.Getuid()
	}
	const nobody = 65534
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}, nobody
}

func TestChildIsHardened(t *testing.T) {
	attr, uid := asNobody()
	cmd := childCommand(tempDirFor(t, uid))
	cmd.SysProcAttr = attr
	c := startRaw(t, cmd)
	proc := fmt.Sprintf("/proc/%d", c.cmd.Process.Pid)

	tasks, err := filepath.Glob(proc + "/task/*/status")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads: %v (%v)", tasks, err)
	}
	// What the child says takes its time to get here.
	const excuse = "forbid new privileges: not possible from within a program with cgo"
	said := func() bool {
		for range 100 {
			if strings.Contains(c.stderr.String(), excuse) {
				return true
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		if !strings.Contains(string(status), "NoNewPrivs:\t1\n") && !said() {
			t.Fatalf("%s may gain privileges, and nothing says so:\n%s", task, c.stderr.String())
		}
	}
	limits, err := os.ReadFile(proc + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && f[4]+f[5] != "00" {
			t.Errorf("core dumps are limited to %s", line)
		}
	}
	// The kernel gives the files of a process that may not be debugged to root.
	info, err := os.Stat(proc + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 {
		t.Errorf("its memory belongs to user %d: it may be debugged", owner)
	}
	c.wantExit(t)
}

// Descriptors are opened anew by their path, at each reload, by a process that
// may not be debugged and is not root.
func TestHardenedChildReadsDescriptors(t *testing.T) {
	attr, uid := asNobody()
	dir := tempDirFor(t, uid)
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	cmd := childCommand(dir)
	cmd.SysProcAttr = attr
	for i, path := range src.Paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		private := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(private, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(private, uid, -1); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(private)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		os.Remove(private)
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		src.Paths[i] = fmt.Sprintf("/dev/fd/%d", lifeLineFD+1+i)
	}
	c := startRaw(t, cmd)
	c.configure(t, testSettings{}, src)
	for range 2 {
		signed, err := c.api.Sign(t.Context(), signToProto(keymanager.KeyIDOf(leaf.Cert), handshakeRequest()))
		if err != nil {
			t.Fatal(err)
		}
		verifyHandshake(t, leaf, signed.GetSignature())
		if _, err := c.api.Reload(t.Context(), &pb.ReloadRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	c.wantExit(t)
}

// A key process that can't be started is tried for ever: nothing may be left of
// an attempt, with a directory for its socket or without.
func TestFailedStartsLeaveNoDescriptors(t *testing.T) {
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	attempts := func() {
		for _, cmd := range []Command{{Tier: "rowdy"}, {Tier: "x", Path: "/bin/true"}, {Tier: "x", Path: "/etc/passwd"}} {
			for _, bases := range []runBases{{dirs: []string{shortTempDir(t)}}, {dirs: []string{"/nowhere"}, anyway: true}} {
				spec := Spec{Settings: json.RawMessage(`{"do":"crash"}`)}
				if h, err := Start(t.Context(), cmd, spec, HostOptions{bases: bases}); err == nil {
					t.Errorf("%+v started", cmd)
					h.Close()
				}
			}
		}
	}
	attempts() // what is opened once
	before := open()
	attempts()
	attempts()
	eventually(t, "the end of what was opened", func() bool { return open() <= before })
}
