// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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
	front := exec.Command("/proc/self/exe", "-test.run=^TestFrontToBeKilled$")
	front.Env = append(os.Environ(), frontMarker+"="+shortTempDir(t))
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

func TestRunDirectory(t *testing.T) {
	long := shortTempDir(t) + "/" + strings.Repeat("x", 80)
	open := shortTempDir(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	file := shortTempDir(t) + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, base, want string }{
		{"writable", shortTempDir(t), ""},
		{"made-if-only-it-is-missing", shortTempDir(t) + "/new", ""},
		{"parent-missing", "/nowhere/at/all", "no such file or directory"},
		{"file", file, "is no directory"},
		{"open-to-everybody", open, "writable by everybody and not sticky"},
		{"too-long", long, "too long for a socket in it"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := makeRunDir(tc.base)
			if tc.want == "" {
				info, statErr := os.Stat(dir)
				if err != nil || statErr != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("made %q: %v, %v", dir, err, statErr)
				}
				return
			}
			if !errors.Is(err, ErrRunDir) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if left, _ := os.ReadDir(long); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestDefaultRunDirectories(t *testing.T) {
	env := map[string]string{"RUNTIME_DIRECTORY": "/run/tlsd:/run/other", "XDG_RUNTIME_DIR": "/run/user/1", "TMPDIR": "/var/tmp"}
	got := fmt.Sprint(defaultRunBases(func(name string) string { return env[name] }))
	if want := "[/run/tlsd /run/user/1/tlsd /var/tmp /tmp]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint(defaultRunBases(func(string) string { return "" })); got != "[/tmp]" {
		t.Errorf("got %s, want [/tmp]", got)
	}
}

func TestGateAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{slots: make(chan struct{}, 1)}
		if err := g.enter(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 5 {
			go func() {
				if g.enter(t.Context(), nil) == nil {
					order = append(order, i) // one at a time, by the gate
					g.leave()
				}
			}()
			synctest.Wait() // until it is in the queue
		}
		g.leave()
		synctest.Wait()
		if fmt.Sprint(order) != "[0 1 2 3 4]" {
			t.Errorf("order %v", order)
		}
	})
}

func TestGateTurnsAway(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name    string
		ctx     context.Context
		gone    chan struct{}
		waiting int64
		want    error
	}{
		{"one-too-many", t.Context(), nil, maxWaiting, ErrBusy},
		{"process-gone", t.Context(), gone, 0, ErrUnavailable},
		{"waited-too-long", ended, nil, 0, ErrUnavailable},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := &gate{slots: make(chan struct{})}
			g.waiting.Store(tc.waiting)
			if err := g.enter(tc.ctx, tc.gone); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if n := g.waiting.Load(); n != tc.waiting {
				t.Errorf("%d are waiting, want %d", n, tc.waiting)
			}
		})
	}
}

func TestBackoffGrowsAndForgets(t *testing.T) {
	var b backoff
	for i, least := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second, 1600 * time.Millisecond} {
		if d := b.next(); d < least || d > least+least/4 {
			t.Errorf("pause %d is %v, want %v and up to a quarter more", i, d, least)
		}
	}
	for range 20 {
		b.next()
	}
	if d := b.next(); d < longPause || d > longPause+longPause/4 {
		t.Errorf("long pause %v", d)
	}
	b.ended(time.Second)
	if d := b.next(); d < longPause {
		t.Errorf("forgot after a short life: %v", d)
	}
	b.ended(stableFor)
	if d := b.next(); d > time.Second {
		t.Errorf("did not forget after a long life: %v", d)
	}
}
