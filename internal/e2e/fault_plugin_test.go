// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// keyProcess returns the process id of tlsd's key process, once it is another
// one than before.
func (d *daemon) keyProcess(before int) int {
	d.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, pid := range childrenOf(d.cmd.Process.Pid) {
			if pid != before && !zombie(pid) {
				return pid
			}
		}
	}
	d.t.Fatalf("no key process after %d\n%s", before, d.log)
	return 0
}

func zombie(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}

// handshake makes one handshake within 10 s and says how it ended.
func (d *daemon) handshake(conf *tls.Config) (*tls.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", d.addr, conf)
}

// untilServed makes handshakes until one succeeds, and returns how long that
// took. Those before must end by an alert that says whose fault it is.
func (d *daemon) untilServed(conf *tls.Config) time.Duration {
	d.t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		c, err := d.handshake(conf)
		if err == nil {
			c.Close()
			return time.Since(began)
		}
		var late net.Error
		if !ourFault(err) && !(errors.As(err, &late) && late.Timeout()) {
			d.t.Errorf("a handshake in the gap ended with %v, want alert 80 or 40", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.t.Fatalf("not served any more\n%s", d.log)
	return 0
}

// ourFault reports whether err is the alert internal_error, or handshake_failure,
// which is what crypto/tls says in TLS 1.2 once the ServerHello is made.
func ourFault(err error) bool {
	text := fmt.Sprint(err)
	return strings.HasSuffix(text, "remote error: tls: internal error") || strings.HasSuffix(text, "remote error: tls: handshake failure")
}

func (d *daemon) count(text string) int { return strings.Count(d.log.String(), text) }

// line is a connection to a backend that sends back each line.
type line struct {
	t *testing.T
	c *tls.Conn
	r *bufio.Reader
}

func (d *daemon) openLine(conf *tls.Config) *line {
	d.t.Helper()
	c, err := d.handshake(conf)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	return &line{d.t, c, bufio.NewReader(c)}
}

func (l *line) mustWork() {
	l.t.Helper()
	l.c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintln(l.c, "still there?")
	if got, err := l.r.ReadString('\n'); err != nil || got != "still there?\n" {
		l.t.Errorf("an open connection says %q, %v", got, err)
	}
}

// echoing starts tlsd for one certificate, before a backend of lines.
func echoing(t *testing.T, args ...string) (*daemon, store) {
	t.Helper()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
	lines := listenOn(t, "tcp", "127.0.0.1:0")
	echoLines(t, lines)
	return start(t, append(append(s.args(), "--backend", "tcp://"+lines.Addr().String()), args...)...), s
}

// P01: the key process is killed, five times in a row.
func TestFaultP01_KeyProcessKilled(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			d, s := echoing(t, "--keymanager", tier)
			conf := clientOf(s)
			open, pid := d.openLine(conf), 0
			var longest time.Duration
			for range 5 {
				pid = d.keyProcess(pid)
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				longest = max(longest, d.untilServed(conf))
				open.mustWork()
			}
			t.Logf("served again after %v at most", longest)
			if n := len(d.awaitLines(5, "signal: killed")); n != 5 || len(d.awaitLines(5, `"key process ended"`)) != 5 {
				t.Errorf("%d lines about 5 deaths\n%s", n, d.log)
			}
		})
	}
}

// A key process that is stopped is killed and replaced.
func TestFault_KeyProcessFrozen(t *testing.T) {
	t.Parallel()
	d, s := echoing(t)
	conf := clientOf(s)
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	open := d.openLine(conf)
	open.mustWork() // and reads the ticket
	conf12 := clientOf(s)
	conf12.MaxVersion = tls.VersionTLS12
	pid := d.keyProcess(0)
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resumed, err := d.handshake(conf)
	if err != nil || !resumed.ConnectionState().DidResume {
		t.Errorf("resumption while the key process is stopped: %v", err)
	} else {
		resumed.Close()
	}
	d.untilServed(conf12)
	t.Logf("served again after %v", time.Since(began))
	if now := d.keyProcess(pid); now == pid {
		t.Errorf("still process %d", pid)
	}
	open.mustWork()
	d.awaitLog("it hangs and was given up: no answer to Health in 3s")
}

// While the key process can't be started again, fresh handshakes fail at once,
// resumed sessions and open connections go on, and all is well by itself when
// the cause is gone.
func TestFault_KeyProcessCannotStart(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
			lines := listenOn(t, "tcp", "127.0.0.1:0")
			echoLines(t, lines)
			d := start(t, "--keymanager", tier, "--config", writeFile(t, filepath.Join(t.TempDir(), "tlsd.yaml"), fmt.Appendf(nil,
				"plugin_wait: 9s\nkeystores: [{path: %s, password_file: %s}]\nlisteners: [{backend: \"tcp://%s\"}]\n", s.path, s.password, lines.Addr())))
			resuming := clientOf(s)
			resuming.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			open := d.openLine(resuming)
			open.mustWork()
			if err := os.Rename(s.path, s.path+".away"); err != nil {
				t.Fatal(err)
			}
			syscall.Kill(d.keyProcess(0), syscall.SIGKILL)
			d.awaitLog("key process not started")
			// Sooner or later one comes between two attempts.
			for began, atOnce := time.Now(), false; !atOnce; {
				if time.Since(began) > 30*time.Second {
					t.Fatalf("no handshake failed at once\n%s", d.log)
				}
				before := time.Now()
				_, err := d.handshake(clientOf(s))
				if err == nil {
					t.Fatal("served without a key process")
				}
				atOnce = time.Since(before) < 500*time.Millisecond
				if !ourFault(err) {
					t.Errorf("a handshake ended with %v, want alert 80", err)
				}
			}
			c, err := d.handshake(resuming)
			if err != nil || !c.ConnectionState().DidResume {
				t.Errorf("resumption without a key process: %v", err)
			} else {
				c.Close()
			}
			open.mustWork()
			if err := os.Rename(s.path+".away", s.path); err != nil {
				t.Fatal(err)
			}
			d.untilServed(clientOf(s))
		})
	}
}

// P03: what is no plugin is refused at the start, with its name and what it
// printed.
func TestFaultP03_PluginIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		testca.WriteProgram(t, path, []byte(text), mode)
		return path
	}
	foreign, err := os.ReadFile(bin("tlsd-keymanager-pkix"))
	if err != nil {
		t.Fatal(err)
	}
	copy(foreign[18:], []byte{0xf3, 0}) // e_machine: RISC-V
	real, asleep := bin("tlsd-keymanager-pkix"), fmt.Sprint("60.", os.Getpid())
	tests := []struct{ name, path, want string }{
		{"echo", "/bin/echo", `Unrecognized remote plugin message: the first line that it printed is`},
		{"prints-first", script("prints-first", "#!/bin/sh\necho hello\nexec "+real+"\n", 0o700), `Unrecognized remote plugin message: the first line that it printed is "hello"`},
		{"not-executable", script("not-executable", "#!/bin/sh\n", 0o600), `is not executable`},
		{"other-machine", script("other-machine", string(foreign), 0o700), `wrong architecture: built for riscv`},
		{"sleeps", script("sleeps", "#!/bin/sh\nexec sleep "+asleep+"\n", 0o700), `did not get ready in time`},
		{"missing", filepath.Join(dir, "missing"), `no such file`},
	}
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			out, err := command(t, bin("tlsd"), append(s.args(), "--listen", freeAddr(t), "--log-format", "json", "--plugin", "x="+tc.path, "--keymanager", "x")...)
			if err == nil || !strings.Contains(out, tc.path) || !strings.Contains(out, tc.want) {
				t.Errorf("%v, want %q and the path:\n%s", err, tc.want, out)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if left := slices.Concat(pidsNaming(tc.path), pidsNaming(asleep)); tc.name == "sleeps" && len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// P06: the kernel kills a child with the thread that started it (PDEATHSIG), and
// Go ends threads as it likes. The key process is nobody's but its own thread's.
func TestFaultP06_ThreadsComeAndGo(t *testing.T) {
	t.Parallel()
	d, s := echoing(t)
	conf := clientOf(s)
	pid := d.keyProcess(0)
	hold := func(handshakes int) {
		t.Helper()
		var failed atomic.Int64
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() {
				for range handshakes / 50 {
					if c, err := d.handshake(conf); err != nil {
						failed.Add(1)
					} else {
						c.Close()
					}
				}
			})
		}
		for range 10 {
			syscall.Kill(d.cmd.Process.Pid, syscall.SIGHUP)
			time.Sleep(50 * time.Millisecond)
		}
		clients.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("%d of %d handshakes failed", n, handshakes)
		}
		if now := childrenOf(d.cmd.Process.Pid); !slices.Equal(now, []int{pid}) {
			t.Errorf("key process %d became %v\n%s", pid, now, d.log)
		}
	}
	hold(2000)
	for range 10 {
		syscall.Kill(pid, syscall.SIGKILL)
		pid = d.keyProcess(pid)
		d.untilServed(conf)
	}
	hold(500)
}

// P07: a plugin that dies soon after each start.
func TestFaultP07_CrashLoop(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
	dir := t.TempDir()
	starts, calm := filepath.Join(dir, "starts"), writeFile(t, filepath.Join(dir, "calm"), nil)
	// Its parent's death is what ends the plugin: the shell execs it, after it
	// has left somebody behind who will kill it.
	plugin := filepath.Join(dir, "plugin")
	testca.WriteProgram(t, plugin, fmt.Appendf(nil,
		"#!/bin/sh\necho start >> %s\n[ -e %s ] || { p=$$; (sleep 0.4; kill -9 $p) >/dev/null 2>&1 3>&- & }\nexec %s\n", starts, calm, bin("tlsd-keymanager-pkixcached")), 0o700)
	lines := listenOn(t, "tcp", "127.0.0.1:0")
	echoLines(t, lines)
	d := start(t, append(s.args(), "--backend", "tcp://"+lines.Addr().String(), "--plugin", "x="+plugin, "--keymanager", "x")...)
	conf := clientOf(s)
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	open := d.openLine(conf)
	open.mustWork()
	if err := os.Remove(calm); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(d.keyProcess(0), syscall.SIGKILL)
	const watched = 6 * time.Second
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if n := len(childrenOf(d.cmd.Process.Pid)); n > 2 { // one, and one that is on its way out
			t.Errorf("%d key processes at once", n)
		}
		c, err := d.handshake(conf)
		if err != nil || !c.ConnectionState().DidResume {
			t.Errorf("resumption during a crash loop: %v", err)
			continue
		}
		c.Close()
	}
	open.mustWork()
	counted := func() int {
		b, _ := os.ReadFile(starts)
		return strings.Count(string(b), "start")
	}
	if n := counted(); n < 3 || n > 10 {
		t.Errorf("%d starts in %v\n%s", n, watched, d.log)
	}
	// On a busy machine some die before they are ready; one may be starting now.
	await(t, "line for each start", func() int {
		return counted() - d.count(`"key process started"`) - d.count(`"key process not started"`)
	}, func(n int) bool { return n == 0 || n == 1 })
	// The open connection has its time, until tlsd is told again.
	for range 2 {
		syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
		time.Sleep(300 * time.Millisecond)
	}
	d.ended = true
	select {
	case <-d.exited:
	case <-time.After(10 * time.Second):
		t.Error("a second SIGTERM did not end tlsd")
	}
}

// A plugin that never stops writing to standard output or standard error, by a
// program that it has left behind on its pipes.
func TestFault_PluginFloods(t *testing.T) {
	t.Parallel()
	for stream, redirect := range map[string]string{"stdout": "2>/dev/null", "stderr": ">&2"} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			plugin := filepath.Join(t.TempDir(), "plugin")
			testca.WriteProgram(t, plugin, fmt.Appendf(nil,
				"#!/bin/sh\n(sleep 0.5; exec yes %s 3>&-) &\nexec %s\n", redirect, bin("tlsd-keymanager-pkixcached")), 0o700)
			d, s := echoing(t, "--plugin", "x="+plugin, "--keymanager", "x")
			conf := clientOf(s)
			d.awaitLog("plugin output dropped")
			pid := d.keyProcess(0)
			for range 20 {
				c, err := d.handshake(conf)
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
			}
			syscall.Kill(pid, syscall.SIGKILL)
			d.untilServed(conf)
			if len(d.awaitLines(1, `"key process ended"`)) != 1 || d.count("it hangs") > 0 {
				t.Errorf("the flood was taken for more\n%.4000s", d.log)
			}
			if n := len(d.log.String()); n > 1<<18 {
				t.Errorf("a log of %d bytes", n)
			}
		})
	}
}

// A terminal sends SIGINT to the whole group: tlsd ends, and the key process
// last.
func TestFault_InterruptFromTheTerminal(t *testing.T) {
	t.Parallel()
	d, s := echoing(t)
	conf := clientOf(s)
	pid := d.keyProcess(0)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		syscall.Kill(pid, sig)
	}
	if c, err := d.handshake(conf); err != nil {
		t.Errorf("after signals to the key process: %v", err)
	} else {
		c.Close()
	}
	if now := d.keyProcess(0); now != pid {
		t.Errorf("key process %d became %d", pid, now)
	}
	d.end(-d.cmd.Process.Pid, syscall.SIGINT)
}
