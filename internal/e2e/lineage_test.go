// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// lineage is a tlsd whose process is another after each upgrade. It is found by
// its configuration file, which only front processes have on their command line.
type lineage struct {
	t      *testing.T
	exe    string // the path that it is started by
	config string
	log    string // a file, since the first process's end is not that of the log
	tmp    string
	done   chan error // tells how the first process ended
	ended  bool
}

// startLineage runs a copy of tlsd by a configuration file with this content and
// waits until it serves.
func startLineage(t *testing.T, config string) *lineage {
	t.Helper()
	l := newLineage(t, config)
	l.start(exec.Command(l.exe, "--config", l.config, "--log-format", "json"))
	l.awaitLog(`"logger":"server","msg":"listening"`, 1)
	return l
}

// asSystemd is how systemd starts a service that wants to know its process id.
const asSystemd = `export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$0" "$@"`

// startAsSystemd does the same with an environment and sockets to begin with, and
// waits for nothing.
func startAsSystemd(t *testing.T, config string, env []string, sockets ...*os.File) *lineage {
	t.Helper()
	l := newLineage(t, config)
	cmd := exec.Command("/bin/sh", "-c", asSystemd, l.exe, "--config", l.config, "--log-format", "json")
	cmd.Env = append(os.Environ(), env...)
	if cmd.ExtraFiles = sockets; len(sockets) > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint("LISTEN_FDS=", len(sockets)))
	}
	l.start(cmd)
	return l
}

func newLineage(t *testing.T, config string) *lineage {
	t.Helper()
	dir := t.TempDir()
	l := &lineage{
		t: t, exe: filepath.Join(dir, "tlsd"), config: filepath.Join(dir, "tlsd.yaml"), log: filepath.Join(dir, "log"),
		tmp: t.TempDir(), done: make(chan error, 1),
	}
	l.install(bin("tlsd"))
	writeFile(t, l.config, []byte(config))
	return l
}

// start runs the first process. What is left is ended with the test.
func (l *lineage) start(cmd *exec.Cmd) {
	l.t.Helper()
	out, err := os.Create(l.log)
	if err != nil {
		l.t.Fatal(err)
	}
	defer out.Close()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+l.tmp, "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY=")
	cmd.Stdout, cmd.Stderr = out, out
	testca.StartGuarded(l.t, cmd)
	go func() { l.done <- cmd.Wait() }()
	l.t.Cleanup(l.end)
}

// install puts a copy of an executable where tlsd's lies, as a package manager
// does: under another name first.
func (l *lineage) install(from string) {
	l.t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		l.t.Fatal(err)
	}
	l.installBytes(content)
}

func (l *lineage) installBytes(content []byte) {
	l.t.Helper()
	testca.WriteProgram(l.t, l.exe+".new", content, 0o755)
	if err := os.Rename(l.exe+".new", l.exe); err != nil {
		l.t.Fatal(err)
	}
}

// pids returns the fronts that run.
func (l *lineage) pids() []int { return pidsNaming(l.config) }

// pidsNaming returns the processes that have an argument, but for zombies.
func pidsNaming(arg string) []int { return pidsWith("\x00" + arg + "\x00") }

// pidsWith returns those whose arguments, each between zeros, hold text.
func pidsWith(text string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f)
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && strings.Contains("\x00"+string(line), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// pid returns the only front.
func (l *lineage) pid() int {
	l.t.Helper()
	pids := await(l.t, "one process", l.pids, func(p []int) bool { return len(p) == 1 })
	return pids[0]
}

// await polls until what get returns is right.
func await[T any](t *testing.T, what string, get func() T, right func(T) bool) T {
	t.Helper()
	var got T
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = get(); right(got) {
			return got
		}
	}
	t.Fatalf("no %s: %v", what, got)
	return got
}

func (l *lineage) signal(pid int, sig syscall.Signal) {
	l.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		l.t.Fatal(err)
	}
}

// upgrade has what is installed take over and returns the process that serves
// then. The one before may still run.
func (l *lineage) upgrade() int {
	l.t.Helper()
	old := l.pid()
	times := strings.Count(l.logged(), "serves now")
	l.signal(old, syscall.SIGUSR2)
	l.awaitLog("serves now", times+1)
	for _, pid := range l.pids() {
		if pid != old {
			return pid
		}
	}
	l.t.Fatalf("no process after %d\n%s", old, l.logged())
	return 0
}

func (l *lineage) logged() string {
	b, _ := os.ReadFile(l.log)
	return string(b)
}

// awaitLog waits until the log holds text so many times.
func (l *lineage) awaitLog(text string, times int) {
	l.t.Helper()
	for deadline := time.Now().Add(45 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Count(l.logged(), text) >= times {
			return
		}
	}
	l.t.Fatalf("no %q (%d) in the log:\n%s", text, times, l.logged())
}

// end ends the processes that are left, and fails the test if they leave a
// child or a file.
func (l *lineage) end() {
	if l.ended {
		return
	}
	l.ended = true
	var all []int
	for _, pid := range l.pids() {
		all = append(append(all, pid), childrenOf(pid)...)
		syscall.Kill(pid, syscall.SIGTERM)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && (len(l.pids()) > 0 || slices.ContainsFunc(all, running)); time.Sleep(10 * time.Millisecond) {
	}
	select {
	case <-l.done:
	case <-time.After(5 * time.Second):
		l.t.Error("the first process does not end")
	}
	for _, pid := range all {
		if running(pid) {
			syscall.Kill(pid, syscall.SIGKILL)
			l.t.Errorf("process %d does not end", pid)
		}
	}
	if left, err := os.ReadDir(l.tmp); err != nil || len(left) > 0 {
		l.t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
	if l.t.Failed() {
		l.t.Log(l.logged())
	}
}

// running reports whether a process is there and no zombie: whoever inherits an
// orphan here may be slow to reap it.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// eof reports how reading to the end of r went, when it did.
func eof(r io.Reader) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, r)
		done <- err
	}()
	return done
}
