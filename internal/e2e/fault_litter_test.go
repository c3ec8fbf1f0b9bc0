// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// kill ends tlsd as nobody can prepare for, and waits until its key process has
// followed it.
func (d *daemon) kill() {
	d.t.Helper()
	children := childrenOf(d.cmd.Process.Pid)
	d.ended = true
	d.cmd.Process.Kill()
	<-d.exited
	for _, pid := range children {
		for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				d.t.Fatalf("process %d outlives tlsd, which was killed", pid)
			}
		}
	}
}

// sockets lists the unix sockets below dir.
func sockets(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type() == fs.ModeSocket {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// P04: a cleaner of temporary directories removes the socket, and kills leave
// sockets.
func TestFaultP04_SocketRemoved(t *testing.T) {
	t.Parallel()
	d, s := echoing(t)
	conf := clientOf(s)
	mustServe := func() {
		t.Helper()
		c, err := d.handshake(conf)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	mustServe()
	old := sockets(t, d.tmp)
	if len(old) != 1 {
		t.Fatalf("sockets %v, want one", old)
	}
	if err := os.Remove(old[0]); err != nil {
		t.Fatal(err)
	}
	mustServe()
	time.Sleep(3 * time.Second) // a look at the key process or two
	mustServe()
	pid := d.keyProcess(0)
	syscall.Kill(pid, syscall.SIGKILL)
	d.untilServed(conf)
	if now := sockets(t, d.tmp); len(now) != 1 || now[0] == old[0] {
		t.Errorf("sockets %v, want one that is new", now)
	}
	if len(d.awaitLines(1, `"key process ended"`)) != 1 {
		t.Errorf("the loss of a name was taken for more\n%s", d.log)
	}
}

// P04: tlsd is killed time and again, and each start clears away what the one
// before left.
func TestFaultP04_KilledTimeAndAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
	tmp := t.TempDir()
	for range 20 {
		d := startWith(t, options{args: s.args(), env: []string{"TMPDIR=" + tmp}})
		d.kill()
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 1 {
			t.Fatalf("left: %v, %v; want what one start makes", left, err)
		}
	}
	d := startWith(t, options{args: s.args(), env: []string{"TMPDIR=" + tmp}})
	d.stop()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left by the last: %v, %v", left, err)
	}
}

// P05: TMPDIR can't hold a socket; the next directory does.
func TestFaultP05_UnusableTMPDIR(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 110))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	runtime, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	for _, tc := range []struct{ name, tmp, said string }{
		{"missing", "/nowhere/tmp", "no such file or directory"},
		{"too-long", long, "is too long for a socket in it: use a directory of at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Passed over, since another is there.
			d := startWith(t, options{args: s.args(), env: []string{"TMPDIR=" + tc.tmp}})
			checkServed(t, d, "w.test", "w.test")
			d = startWith(t, options{args: s.args(), env: []string{"TMPDIR=" + tc.tmp, "RUNTIME_DIRECTORY=" + runtime}})
			checkServed(t, d, "w.test", "w.test")
			if len(sockets(t, runtime)) != 1 {
				t.Errorf("sockets in RUNTIME_DIRECTORY: %v", sockets(t, runtime))
			}
			// Refused, since it was asked for.
			out, err := command(t, bin("tlsd"), append(s.args(), "--listen", freeAddr(t), "--config",
				writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), []byte("run_dir: "+tc.tmp+"\n")))...)
			if err == nil || !strings.Contains(out, tc.tmp) || !strings.Contains(out, tc.said) {
				t.Errorf("run_dir: %v, want %q\n%s", err, tc.said, out)
			}
		})
	}
}

// P05: nothing at all can be written to, and no init process is there but tlsd:
// a container as hard as they come.
func TestFaultP05_ReadOnlyRootAndInitProcess(t *testing.T) {
	t.Parallel()
	unshare := testca.Tool(t, "unshare")
	if out, err := exec.Command(unshare, "--mount", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		noNamespaces(t, fmt.Errorf("%w %s", err, out))
	}
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
	dir := t.TempDir()
	// A plugin that leaves orphans behind: children of the init process.
	plugin := filepath.Join(dir, "plugin")
	testca.WriteProgram(t, plugin, fmt.Appendf(nil,
		"#!/bin/sh\n(for i in 1 2 3; do (sleep 0.2 & ) ; done) >/dev/null 2>&1 3>&-\nexec %s\n", bin("tlsd-keymanager-pkixcached")), 0o700)
	d := &daemon{t: t, addr: freeAddr(t), log: &buffer{}, stdout: &buffer{}, exited: make(chan error, 1), tmp: t.TempDir()}
	script := `mount -o remount,ro,bind / 2>/dev/null || { mount --bind / / && mount -o remount,ro,bind /; }
for m in /tmp /dev/shm /var/tmp; do mount --bind $m $m && mount -o remount,ro,bind $m; done
mount -t proc proc /proc
exec "$@"`
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", script, "sh",
		bin("tlsd"), "--listen", d.addr, "--log-format", "json", "--plugin", "x=" + plugin, "--keymanager", "x"}, s.args()...)
	d.cmd = exec.Command(unshare, args...)
	d.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	d.cmd.Stdout, d.cmd.Stderr = d.stdout, d.log
	testca.StartGuarded(t, d.cmd)
	go func() { d.exited <- d.cmd.Wait() }()
	t.Cleanup(func() {
		d.cmd.Process.Kill()
		<-d.exited
	})
	d.awaitListening()
	checkServed(t, d, "w.test", "w.test")
	for _, want := range []string{"key process gets no socket with a name", "no usable run directory", "read-only file system"} {
		d.awaitLog(want)
	}
	init := childrenOf(d.cmd.Process.Pid)
	if len(init) != 1 {
		t.Fatalf("tlsd is not the init process: %v", init)
	}
	// The key process ends too, and is not waited for by whoever reaps orphans.
	for _, pid := range childrenOf(init[0]) {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); strings.HasSuffix(exe, "tlsd-keymanager-pkixcached") {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	d.awaitLog("signal: killed")
	d.untilServed(clientOf(s))
	zombies := func() (n int) {
		for _, pid := range childrenOf(init[0]) {
			if zombie(pid) {
				n++
			}
		}
		return n
	}
	seen := 0
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		now := zombies()
		seen = max(seen, now)
		if seen > 0 && now == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d zombies, %d at most: want some, and then none", now, seen)
		}
	}
}

// noNamespaces ends a test that the machine doesn't let run.
func noNamespaces(t *testing.T, err error) {
	t.Helper()
	text := strings.ToLower(err.Error()) // unshare's, perhaps
	if isRoot() && !strings.Contains(text, "not permitted") && !strings.Contains(text, "permission denied") {
		t.Fatalf("make namespaces: %v", err)
	}
	t.Skipf("NOT CHECKED: this machine allows no namespaces: %v", err)
}

// P08: whatever happens, no password is in a log, an argument, or the
// environment of a key process.
func TestFaultP08_Secrets(t *testing.T) {
	t.Parallel()
	const secret, wrong = "S3cr3t-4711", "Wr0ng-0815"
	cert := testca.NewRoot(t, testca.Spec{}).Issue(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.P256})
	dir := t.TempDir()
	store := filepath.Join(dir, "server.p12")
	testca.WritePKCS12(t, store, secret, entry(cert))
	file := writeFile(t, filepath.Join(dir, "pass"), []byte(secret+"\n"))
	for _, tc := range []struct {
		name string
		o    options
	}{
		{"file", options{args: []string{"--keystore-password-file", file}}},
		{"environment", options{env: []string{"TLSD_KEYSTORE_PASSWORD=" + secret}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.args = append(tc.o.args, "--keystore", store, "--log-level", "debug")
			d := startWith(t, tc.o)
			look := func(when string) {
				t.Helper()
				for _, pid := range append(childrenOf(d.cmd.Process.Pid), d.cmd.Process.Pid) {
					for _, what := range []string{"cmdline", "environ"} {
						b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, what))
						// The operator put it into the environment of tlsd, which can't be changed.
						if bytes.Contains(b, []byte(secret)) && !(tc.name == "environment" && what == "environ" && pid == d.cmd.Process.Pid) {
							t.Errorf("%s: the password is in /proc/%d/%s", when, pid, what)
						}
					}
				}
			}
			checkServed(t, d, "w.test", "w.test")
			look("after the start")
			pid := d.keyProcess(0)
			syscall.Kill(pid, syscall.SIGKILL)
			d.keyProcess(pid)
			checkServed(t, d, "w.test", "w.test")
			look("after a restart")
			if tc.name == "file" {
				writeFile(t, file, []byte(wrong+"\n"))
				syscall.Kill(d.cmd.Process.Pid, syscall.SIGHUP)
				d.awaitLog("reload")
				checkServed(t, d, "w.test", "w.test")
				writeFile(t, file, []byte(secret+"\n"))
			}
			d.stop()
			log := d.log.String() + d.stdout.String()
			for what, bad := range map[string]string{"password": secret, "wrong password": wrong, "key": "PRIVATE KEY"} {
				if strings.Contains(log, bad) {
					t.Errorf("the %s is in the log:\n%s", what, log)
				}
			}
		})
	}
}
