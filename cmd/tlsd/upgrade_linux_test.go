// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A password that was typed can't be asked for again, since nobody may sit there:
// the upgrade is refused, and tlsd goes on.
func TestUpgradeAfterTypedPassword(t *testing.T) {
	f := newFixtures(t)
	terminal, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "--keystore", filepath.Join(f.dir, "server.p12"), "--listen", "127.0.0.1:0", "--log-format", "json")
	cmd.Args[0] = "tlsd"
	cmd.Env = []string{"TMPDIR=" + t.TempDir()}
	cmd.Stdin, cmd.Stderr = tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(syscall.SIGTERM)
	tty.Close()
	said := bufio.NewReader(terminal)
	await := func(text string) {
		t.Helper()
		got := ""
		for !strings.Contains(got, text) {
			b, err := said.ReadByte()
			if err != nil {
				t.Fatalf("no %q: %v after %q", text, err, got)
			}
			got += string(b)
		}
	}
	await("password of ")
	await(": ")
	if _, err := io.WriteString(terminal, "changeit\n"); err != nil {
		t.Fatal(err)
	}
	await(`"listening"`)
	cmd.Process.Signal(syscall.SIGUSR2)
	await("upgrade refused: this process goes on")
	await("the password was typed")
	cmd.Process.Signal(syscall.SIGHUP)
	await("reloaded")
}
