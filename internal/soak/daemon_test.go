// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// daemon is the tlsd that is tested, and its backends.
type daemon struct {
	pid                int
	web, echo, metrics string // addresses
	log                string
}

// answer is what the HTTP backend says.
const answer = "the backend's answer"

func startDaemon(t *testing.T, k *keystore) *daemon {
	t.Helper()
	dir := t.TempDir()
	exe := filepath.Join(dir, "tlsd")
	build := exec.Command("go", "build", "-o", exe, "./cmd/tlsd")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	d := &daemon{web: testca.FreeAddr(t), echo: testca.FreeAddr(t), metrics: testca.FreeAddr(t), log: filepath.Join(dir, "log")}
	config := fmt.Sprintf(`keystores: [{path: %s, password_file: %s}]
listeners:
  - {listen: "%s", backend: "http://%s"}
  - {listen: "%s", backend: "tcp://%s"}
metrics: {listen: "%s"}
log: {level: warn}
`, k.path, k.password, d.web, serveHTTP(t), d.echo, serveEcho(t), d.metrics)
	path := filepath.Join(dir, "tlsd.yaml")
	log, err := os.Create(d.log)
	if err := firstOf(err, os.WriteFile(path, []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(exe, "--config", path, "--log-format", "json")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY=")
	cmd.Stdout, cmd.Stderr = log, log
	testca.StartGuarded(t, cmd)
	d.pid = cmd.Process.Pid
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("tlsd ended with %v\n%s", err, d.tail())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); !d.ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("tlsd is not ready\n%s", d.tail())
		}
	}
	return d
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ready asks tlsd whether it is.
func (d *daemon) ready() bool {
	resp, err := http.Get("http://" + d.metrics + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// metric returns the value of a metric without labels, or -1.
func (d *daemon) metric(name string) int {
	resp, err := http.Get("http://" + d.metrics + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, _ := strconv.ParseFloat(value, 64)
			return int(f)
		}
	}
	return -1
}

// keyProcesses returns tlsd's children that run.
func (d *daemon) keyProcesses() []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && status(pid, "State:") != "Z" {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// status returns the first word of a line of /proc/PID/status.
func status(pid int, line string) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := strings.Cut(string(b), "\n"+line)
	if fields := strings.Fields(rest); ok && len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// tail returns the end of the log.
func (d *daemon) tail() string {
	b, _ := os.ReadFile(d.log)
	return string(b[max(0, len(b)-8000):])
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serveHTTP(t *testing.T) string {
	l := listen(t)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) })}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

func serveEcho(t *testing.T) string {
	l := listen(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}
