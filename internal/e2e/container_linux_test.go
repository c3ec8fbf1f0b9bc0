// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tlsd/tlsd/internal/testca"
)

// containerRoot names the root of a container in the environment of the process
// that is to become it: see become.
const containerRoot = "TLSD_TEST_CONTAINER_ROOT"

// beContainer does not return where this process is to be a container.
func beContainer() {
	if root := os.Getenv(containerRoot); root != "" {
		fmt.Fprintln(os.Stderr, "container:", become(root))
		os.Exit(1)
	}
}

// become makes this process the first one of a container, and runs what its
// arguments say: a file system of its own that can't be written to, no
// capabilities, no_new_privs. User and namespaces are made with it. A container
// engine does the same.
func become(root string) error {
	runtime.LockOSThread() // no_new_privs is a thread's, and so is what execs
	const readOnly = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	null := filepath.Join(root, "dev/null")
	steps := []struct {
		what string
		err  func() error
	}{
		{"mount apart", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mount root", func() error { return unix.Mount(root, root, "", unix.MS_BIND, "") }},
		{"mount proc", func() error {
			return unix.Mount("proc", filepath.Join(root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}},
		{"mount /dev/null", func() error { return unix.Mount("/dev/null", null, "", unix.MS_BIND, "") }},
		{"make root read-only", func() error { return unix.Mount("", root, "", readOnly, "") }},
		{"chroot", func() error { return errors.Join(unix.Chroot(root), unix.Chdir("/")) }},
		{"drop capabilities", dropCapabilities},
		{"no new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
	}
	for _, s := range steps {
		if err := s.err(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return syscall.Exec(os.Args[1], os.Args[1:], []string{"PATH=/"})
}

// dropCapabilities drops what exec would keep or could give back.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); ; c++ {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			return nil // there are no more
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return err
		}
	}
}

// container returns a command that runs in root as user 65532, or, where this is
// not root, as this user under that number.
func container(root string, args ...string) *exec.Cmd {
	const user = 65532
	uid, gid := user, user
	if os.Geteuid() != 0 {
		uid, gid = os.Geteuid(), os.Getegid()
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{containerRoot + "=" + root}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: gid, Size: 1}},
		Credential:  &syscall.Credential{Uid: user, Gid: user, NoSetGroups: os.Geteuid() != 0},

		GidMappingsEnableSetgroups: os.Geteuid() == 0,
		// What become needs, which exec would take from any user but root.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP},
		Pdeathsig:   syscall.SIGKILL,
	}
	return cmd
}

// TestContainer builds the image by the Dockerfile's own lines and runs it as
// restricted as the Dockerfile says that it can be: it serves, its health check
// is well, it is process 1 and so can't be upgraded, and SIGTERM ends it.
func TestContainer(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	if last := d.from[len(d.from)-1]; last != "scratch" || d.user != "65532:65532" {
		t.Errorf("the last stage is from %q with user %q", last, d.user)
	}
	root := buildImage(t, d)
	checkStatic(t, filepath.Join(root, d.entrypoint[0]))
	addr, metrics := freeAddr(t), freeAddr(t)
	s := containerFiles(t, root, addr, metrics)
	if d.healthy[len(d.healthy)-1] != "127.0.0.1:9100" {
		t.Errorf("the health check is %q", d.healthy)
	}
	d.healthy[len(d.healthy)-1] = metrics // a free one

	log := &buffer{}
	cmd := container(root, append(d.entrypoint, d.cmd...)...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		noNamespaces(t, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	within := func(what string, there func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !there(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %s:\n%s", what, log)
			}
			if strings.Contains(log.String(), "container: ") {
				noNamespaces(t, errors.New(log.String()))
			}
		}
	}
	within("listener", func() bool { return strings.Contains(log.String(), `"backend":"builtin:hello"`) })

	checkRestricted(t, cmd.Process.Pid)
	port := addr[strings.LastIndex(addr, ":")+1:]
	page := mustCommand(t, testca.Tool(t, "curl"), "-sS", "--cacert", s.ca, "--resolve", "w.test:"+port+":127.0.0.1", "https://w.test:"+port+"/")
	if !strings.Contains(page, "pkixcached") {
		t.Errorf("served %s", page)
	}
	within("well health check", func() bool { return container(root, d.healthy...).Run() == nil })

	config := filepath.Join(root, "etc/tlsd/tlsd.yaml")
	if err := os.WriteFile(config, []byte("listners: []"), 0o644); err != nil {
		t.Fatal(err)
	}
	within("refusal of a mistake", func() bool { return strings.Contains(log.String(), "listners: unknown key") })
	if out, err := container(root, d.healthy...).CombinedOutput(); err != nil {
		t.Errorf("the health check fails of a mistake in the configuration: %v\n%s", err, out)
	}

	cmd.Process.Signal(syscall.SIGUSR2)
	within("refusal of an upgrade", func() bool { return strings.Contains(log.String(), "tlsd is process 1 of its container") })
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v\n%s", err, log)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("SIGTERM does not end it\n%s", log)
	}
	if err := container(root, d.healthy...).Run(); err == nil {
		t.Error("the health check is well without a tlsd")
	}
}

// containerFiles mounts, as it were, what a user does.
func containerFiles(t *testing.T, root, addr, metrics string) store {
	t.Helper()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	for _, dir := range []string{"proc", "dev", "etc/tlsd"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, s.path, filepath.Join(root, "etc/tlsd/server.p12"))
	copyFile(t, s.password, filepath.Join(root, "etc/tlsd/server.pass"))
	for name, content := range map[string]string{
		"dev/null": "",
		"etc/tlsd/tlsd.yaml": fmt.Sprintf("keystores: [{path: /etc/tlsd/server.p12, password_file: /etc/tlsd/server.pass}]\n"+
			"listeners: [{listen: \"%s\"}]\nmetrics: {listen: \"%s\"}\n", addr, metrics),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func checkStatic(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic loader", path)
		}
	}
}

// checkRestricted looks at what the kernel says of front and key process.
func checkRestricted(t *testing.T, pid int) {
	t.Helper()
	keys := childrenOf(pid)
	if len(keys) != 1 {
		t.Errorf("children %v, want the key process", keys)
	}
	for _, pid := range append(keys, pid) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"NoNewPrivs:\t1", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
			if !bytes.Contains(status, []byte("\n"+want+"\n")) {
				t.Errorf("process %d: no %q in\n%s", pid, want, status)
			}
		}
		if os.Geteuid() == 0 && !bytes.Contains(status, []byte("Uid:\t"+strconv.Itoa(65532)+"\t65532\t65532\t65532\n")) {
			t.Errorf("process %d runs as another user:\n%s", pid, status)
		}
	}
}
