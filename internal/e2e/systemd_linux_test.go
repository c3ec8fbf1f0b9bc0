// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// notices is a service manager's end of sd_notify.
type notices struct {
	t    *testing.T
	came chan notice // closed when no more can come
	name string      // for $NOTIFY_SOCKET
}

// notice is one message and who sent it.
type notice struct {
	text string
	pid  int
}

func listenForNotices(t *testing.T, name string) *notices {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &notices{t, make(chan notice, 1024), name}
	go func() { // at once, as systemd does: the kernel keeps ten
		defer close(n.came)
		for {
			got, err := receive(conn)
			if err != nil {
				return
			}
			n.came <- got
		}
	}()
	return n
}

func receive(conn *net.UnixConn) (notice, error) {
	text, oob := make([]byte, 4096), make([]byte, syscall.CmsgSpace(syscall.SizeofUcred))
	size, oobSize, _, _, err := conn.ReadMsgUnix(text, oob)
	if err != nil {
		return notice{}, err
	}
	control, err := syscall.ParseSocketControlMessage(oob[:oobSize])
	if err != nil {
		return notice{}, err
	}
	cred, err := syscall.ParseUnixCredentials(&control[0])
	if err != nil {
		return notice{}, err
	}
	return notice{string(text[:size]), int(cred.Pid)}, nil
}

// next returns the next message.
func (n *notices) next() notice {
	n.t.Helper()
	select {
	case got, ok := <-n.came:
		if !ok {
			n.t.Fatal("no notice can come any more")
		}
		return got
	case <-time.After(20 * time.Second):
		n.t.Fatal("no notice")
	}
	return notice{}
}

// count returns how many messages come in a time.
func (n *notices) count(d time.Duration) (messages int) {
	over := time.After(d)
	for {
		select {
		case <-n.came:
			messages++
		case <-over:
			return messages
		}
	}
}

const ping = "WATCHDOG=1"

// expect returns the next message that is no ping, which pid has to have sent,
// with those lines.
func (n *notices) expect(pid int, lines ...string) {
	n.t.Helper()
	got := n.next()
	for got.text == ping {
		got = n.next()
	}
	want := regexp.MustCompile(`^` + strings.Join(lines, "\n") + `$`)
	if got.pid != pid || !want.MatchString(got.text) {
		n.t.Errorf("process %d said %q, want %q of %d", got.pid, got.text, want, pid)
	}
}

// pinged waits for a ping of pid.
func (n *notices) pinged(pid int) {
	n.t.Helper()
	for range 3 { // what was on its way
		if got := n.next(); got.text == ping && got.pid == pid {
			return
		} else if got.text != ping {
			n.t.Errorf("process %d said %q", got.pid, got.text)
		}
	}
	n.t.Errorf("no ping of process %d", pid)
}

// TestNotify follows what a service manager is told from the start to the end, by
// way of a reload that is good, one that is not, and an upgrade.
func TestNotify(t *testing.T) {
	for name, socket := range map[string]string{
		"file":     filepath.Join(t.TempDir(), "n"),
		"abstract": fmt.Sprintf("@tlsd-test-%d", os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, addr := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}}), freeAddr(t)
			n := listenForNotices(t, socket)
			l := startAsSystemd(t, fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners: [{listen: \"%s\"}]\n", s.path, s.password, addr),
				[]string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=200000"})
			pid := l.pid()

			n.expect(pid, "READY=1", "STATUS=serving on "+addr)
			if c, err := tls.Dial("tcp", addr, clientOf(s)); err != nil {
				t.Errorf("said to be ready: %v", err)
			} else {
				c.Close()
			}
			n.pinged(pid)

			l.signal(pid, syscall.SIGHUP)
			n.expect(pid, "RELOADING=1", `MONOTONIC_USEC=\d+`, "STATUS=reloading")
			n.expect(pid, "READY=1", "STATUS=serving; reloaded")

			good, err := os.ReadFile(s.path)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, s.path, good[:len(good)/2])
			l.signal(pid, syscall.SIGHUP)
			n.expect(pid, "RELOADING=1", `MONOTONIC_USEC=\d+`, "STATUS=reloading")
			n.expect(pid, "READY=1", "STATUS=serving; reload failed: .*server.p12.*")
			writeFile(t, s.path, good)

			next := l.upgrade()
			n.expect(next, fmt.Sprint("MAINPID=", next), "READY=1", "STATUS=serving on "+addr)
			n.pinged(next)
			await(t, "end of the old process", func() bool { return running(pid) }, func(r bool) bool { return !r })

			l.installBytes([]byte("#!/bin/sh\nexit 1\n"))
			l.signal(next, syscall.SIGUSR2)
			n.expect(next, fmt.Sprint("MAINPID=", next), "STATUS=serving; an upgrade failed")

			l.signal(next, syscall.SIGTERM)
			n.expect(next, "STOPPING=1", "STATUS=waiting for open connections to end")
		})
	}
}

// TestNoPingWithoutAMainLoop: where tlsd doesn't act on signals any more the pings
// stop, and they come again when it does.
func TestNoPingWithoutAMainLoop(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	n := listenForNotices(t, filepath.Join(t.TempDir(), "n"))
	l := startAsSystemd(t, fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners: [{listen: \"%s\"}]\n", s.path, s.password, freeAddr(t)),
		[]string{"NOTIFY_SOCKET=" + n.name, "WATCHDOG_USEC=100000"})
	pid := l.pid()
	n.expect(pid, "READY=1", "STATUS=.*")
	n.pinged(pid)
	l.signal(pid, syscall.SIGSTOP)
	n.count(200 * time.Millisecond) // those that were on their way
	if pings := n.count(time.Second); pings > 0 {
		t.Errorf("%d pings of a process that is stopped", pings)
	}
	l.signal(pid, syscall.SIGCONT)
	n.pinged(pid)
}

// TestFaultManagerDoesNotRead: a service manager whose queue is full doesn't keep
// tlsd from ending when it is told to.
func TestFaultManagerDoesNotRead(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	socket := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l := startAsSystemd(t, fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners: [{listen: \"%s\"}]\n", s.path, s.password, freeAddr(t)),
		[]string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=2000"})
	l.awaitLog(`"logger":"server","msg":"listening"`, 1)
	l.signal(l.pid(), syscall.SIGTERM)
	select {
	case err := <-l.done:
		l.done <- err
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(15 * time.Second):
		t.Error("it is deaf to SIGTERM")
	}
}

// TestSocketActivation serves on sockets that were opened for tlsd: a client that
// connected before there was one is served, key processes don't learn of them, an
// upgrade hands them on, and their files are not tlsd's to remove.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	dir, err := os.MkdirTemp("", "e2e") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	tcp, file := listenOn(t, "tcp", "127.0.0.1:0").(*net.TCPListener), listenOn(t, "unix", path).(*net.UnixListener)
	file.SetUnlinkOnClose(false)
	early, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	l := startAsSystemd(t, fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners: [{listen: \"%s\"}, {listen: \"unix:%s\"}]\n", s.path, s.password, tcp.Addr(), path),
		[]string{"LISTEN_FDNAMES=tlsd.socket:tlsd.socket"}, fileOf(t, tcp), fileOf(t, file))
	tcp.Close()
	file.Close()
	if err := tls.Client(early, clientOf(s)).Handshake(); err != nil {
		t.Errorf("a client from before the start: %v", err)
	}
	for range 2 {
		for network, addr := range map[string]string{"tcp": tcp.Addr().String(), "unix": path} {
			c, err := tls.Dial(network, addr, clientOf(s))
			if err != nil {
				t.Fatalf("%s: %v", network, err)
			}
			c.Close()
		}
		noneOf(t, childrenOf(l.pid()), "LISTEN_", "NOTIFY_SOCKET", "WATCHDOG_", "TABLEFLIP")
		l.upgrade()
		early.Close()
	}
	l.end()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("systemd's file is gone: %v", err)
	}
}

// TestSocketComesBack: a reload gives up sockets that were opened for tlsd, and the
// next one has them again, with the clients that have come meanwhile.
func TestSocketComesBack(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	dir, err := os.MkdirTemp("", "e2e") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	tcp, file := listenOn(t, "tcp", "127.0.0.1:0").(*net.TCPListener), listenOn(t, "unix", filepath.Join(dir, "s")).(*net.UnixListener)
	file.SetUnlinkOnClose(false)
	without := fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners:\n- listen: \"%s\"\n", s.path, s.password, freeAddr(t))
	with := without + fmt.Sprintf("- listen: \"%s\"\n- listen: \"unix:%s\"\n", tcp.Addr(), file.Addr())
	l := startAsSystemd(t, with, []string{"LISTEN_FDNAMES=tlsd.socket:tlsd.socket"}, fileOf(t, tcp), fileOf(t, file))
	tcp.Close()
	file.Close()
	l.awaitLog(`"msg":"listening"`, 3)
	for round := 1; round <= 2; round++ {
		writeFile(t, l.config, []byte(without))
		l.signal(l.pid(), syscall.SIGHUP)
		l.awaitLog("no longer listening", 2*round)
		var waiting []net.Conn
		for _, addr := range []net.Addr{tcp.Addr(), file.Addr()} {
			c, err := net.Dial(addr.Network(), addr.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			waiting = append(waiting, c)
		}
		writeFile(t, l.config, []byte(with))
		l.signal(l.pid(), syscall.SIGHUP)
		l.awaitLog(`"msg":"listening"`, 3+2*round)
		for _, c := range waiting {
			c.SetDeadline(time.Now().Add(20 * time.Second))
			if err := tls.Client(c, clientOf(s)).Handshake(); err != nil {
				t.Errorf("round %d, %s: %v", round, c.RemoteAddr().Network(), err)
			}
			c.Close()
		}
	}
	l.upgrade()
	c, err := tls.Dial("tcp", tcp.Addr().String(), clientOf(s))
	if err != nil {
		t.Fatalf("after an upgrade: %v", err)
	}
	c.Close()
}

func fileOf(t *testing.T, l interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// noneOf checks that the environment of key processes has no such names. They
// are not dumpable, so that only root can look.
func noneOf(t *testing.T, pids []int, prefixes ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, pid := range pids {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range prefixes {
			if strings.Contains("\x00"+string(env), "\x00"+p) {
				t.Errorf("the key process has %s* in its environment", p)
			}
		}
	}
}

// TestForeignSockets: what was opened where nobody listens would keep clients
// waiting; tlsd says so and doesn't start.
func TestForeignSockets(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	here := listenOn(t, "tcp", "127.0.0.1:0").(*net.TCPListener)
	defer here.Close()
	conn, err := net.Dial("tcp", here.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		socket interface{ File() (*os.File, error) }
		want   string
	}{
		"elsewhere":  {here, fmt.Sprintf(`systemd passed the socket "https.socket" at %s, and no listener has that address`, here.Addr())},
		"connection": {conn.(*net.TCPConn), `systemd passed "https.socket", which does not listen: the socket unit needs ListenStream= and Accept=no`},
	} {
		t.Run(name, func(t *testing.T) {
			l := startAsSystemd(t, fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners: [{listen: \"%s\"}]\n", s.path, s.password, freeAddr(t)),
				[]string{"LISTEN_FDNAMES=https.socket"}, fileOf(t, tc.socket))
			l.awaitLog(tc.want, 1)
			if err := <-l.done; err == nil || err.Error() != "exit status 2" {
				t.Errorf("ended with %v", err)
			}
			l.done <- nil
		})
	}
}
