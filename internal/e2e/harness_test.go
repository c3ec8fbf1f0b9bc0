// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// binDir holds what TestMain built: tlsd and the tiers' executables.
var binDir string

func TestMain(m *testing.M) {
	beContainer()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binDir = os.Getenv(toBeKilled); binDir != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "tlsd-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"./cmd/tlsd", "./plugins/sunx509/cmd/...", "./plugins/pkix/cmd/...", "./plugins/pkixcached/cmd/...")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// bin returns the path of a built program.
func bin(name string) string { return filepath.Join(binDir, name) }

// daemon is a running tlsd.
type daemon struct {
	t      *testing.T
	cmd    *exec.Cmd
	addr   string
	log    *buffer
	stdout *buffer
	exited chan error
	tmp    string // its TMPDIR
	ended  bool
}

// buffer is a bytes.Buffer for one writer and any number of readers.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// options of a start that tests change.
type options struct {
	env   []string
	args  []string
	stdin string // a file's path; empty: nothing
	addr  string // that the configuration listens on; empty: a free one, by flag
}

// start runs tlsd on a free port and waits until it accepts connections. It is
// ended, and its leavings checked, when the test ends.
func start(t *testing.T, args ...string) *daemon { return startWith(t, options{args: args}) }

func startWith(t *testing.T, o options) *daemon {
	t.Helper()
	d := &daemon{t: t, addr: o.addr, log: &buffer{}, stdout: &buffer{}, exited: make(chan error, 1), tmp: t.TempDir()}
	args := append([]string{"--log-format", "json"}, o.args...)
	if d.addr == "" {
		d.addr = freeAddr(t)
		args = append([]string{"--listen", d.addr}, args...)
	}
	d.cmd = exec.Command(bin("tlsd"), args...)
	d.cmd.Env = append(append(os.Environ(), "TMPDIR="+d.tmp, "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY="), o.env...)
	d.cmd.Stdout, d.cmd.Stderr = d.stdout, d.log
	if o.stdin != "" {
		f, err := os.Open(o.stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		d.cmd.Stdin = f
	}
	testca.StartGuarded(t, d.cmd)
	go func() { d.exited <- d.cmd.Wait() }()
	t.Cleanup(d.stop)
	d.awaitListening()
	return d
}

func (d *daemon) awaitListening() {
	d.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-d.exited:
			d.exited <- err
			d.t.Fatalf("tlsd ended: %v\n%s", err, d.log)
		default:
		}
		if c, err := net.Dial("tcp", d.addr); err == nil {
			c.Close()
			return
		}
	}
	d.t.Fatalf("tlsd does not listen\n%s", d.log)
}

// stop ends tlsd as an init system does.
func (d *daemon) stop() { d.end(d.cmd.Process.Pid, syscall.SIGTERM) }

// end sends a signal to tlsd, or to its group where pid is negative, and fails
// the test if tlsd has ended before, doesn't end well, or leaves a child or a
// file.
func (d *daemon) end(pid int, sig syscall.Signal) {
	if d.ended {
		return
	}
	d.ended = true
	select {
	case err := <-d.exited:
		d.t.Errorf("tlsd ended by itself: %v\n%s", err, d.log)
		return
	default:
	}
	children := childrenOf(d.cmd.Process.Pid)
	syscall.Kill(pid, sig)
	select {
	case err := <-d.exited:
		if err != nil {
			d.t.Errorf("tlsd ended with %v\n%s", err, d.log)
		}
	case <-time.After(20 * time.Second):
		d.cmd.Process.Kill()
		d.t.Errorf("tlsd does not end on %v\n%s", sig, d.log)
	}
	for _, pid := range children {
		if syscall.Kill(pid, 0) == nil {
			d.t.Errorf("process %d outlives tlsd", pid)
		}
	}
	left, err := os.ReadDir(d.tmp)
	if err != nil || len(left) > 0 {
		d.t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}

// childrenOf returns the direct children of a process.
func childrenOf(pid int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for _, f := range strings.Fields(string(b)) {
			var child int
			fmt.Sscan(f, &child)
			pids = append(pids, child)
		}
	}
	return pids
}

// awaitLog waits until the log holds text.
func (d *daemon) awaitLog(text string) {
	d.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(d.log.String(), text) {
			return
		}
	}
	d.t.Fatalf("no %q in the log:\n%s", text, d.log)
}

// awaitLines waits until as many lines of the log hold each of texts, and returns
// those that do, which may be more by then. A key process's come some time after
// what they tell of.
func (d *daemon) awaitLines(n int, texts ...string) []string {
	d.t.Helper()
	get := func() []string {
		log := d.log.String()
		return linesWith(log[:strings.LastIndexByte(log, '\n')+1], texts...)
	}
	return await(d.t, fmt.Sprintf("%d lines with %q in\n%s", n, texts, d.log), get, func(found []string) bool { return len(found) >= n })
}

// awaitPrinted waits for a line on standard output and returns what is there.
func (d *daemon) awaitPrinted() string {
	d.t.Helper()
	return await(d.t, "line on standard output", d.stdout.String, func(s string) bool { return strings.Contains(s, "\n") })
}

func freeAddr(t *testing.T) string { return testca.FreeAddr(t) }

// command runs a program for at most 30 s and returns what it printed, stdout
// and stderr together.
func command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	return commandWithInput(t, "", name, args...)
}

func commandWithInput(t *testing.T, input, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustCommand(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := command(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func writeFile(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
