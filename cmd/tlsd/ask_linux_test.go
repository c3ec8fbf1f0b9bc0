// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ^C at the question ends tlsd with the shell's status, on a line of its own and
// with the terminal's echo as it was.
func TestInterruptedQuestion(t *testing.T) {
	f := newFixtures(t)
	store := filepath.Join(f.dir, "server.p12")
	for name, args := range map[string][]string{
		"serve":    {"--keystore", store, "--listen", "127.0.0.1:0"},
		"check":    {"check", "--keystore", store},
		"keystore": {"keystore", "list", store},
	} {
		t.Run(name, func(t *testing.T) {
			terminal, tty := openTerminal(t)
			before := echoes(t, tty)
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
			cmd.Args[0] = "tlsd"
			cmd.Env = []string{"TMPDIR=" + t.TempDir()}
			cmd.Stdin, cmd.Stderr = tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := ""
			for buf := make([]byte, 1024); !strings.HasSuffix(said, ": "); {
				n, err := terminal.Read(buf)
				if err != nil {
					t.Fatalf("%v after %q", err, said)
				}
				said += string(buf[:n])
			}
			for echoes(t, tty) { // until it is read from, a ^C would be another's
			}
			if _, err := io.WriteString(terminal, "\x03"); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitSignal {
				t.Errorf("ended with %v, want status %d", err, exitSignal)
			}
			if echoes(t, tty) != before {
				t.Error("the terminal's echo is left off")
			}
			tty.Close()
			rest, _ := io.ReadAll(terminal) // ends with an error: nobody has the other end open
			if got := strings.TrimPrefix(string(rest), "^C"); got != "\r\n" {
				t.Errorf("after the question: %q", rest)
			}
		})
	}
}

// openTerminal returns the two ends of a pseudo-terminal.
func openTerminal(t *testing.T) (terminal, tty *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return terminal, tty
}

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}
