// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

const (
	reloadedLine = `"msg":"reloaded"`
	failedLine   = `"msg":"reload failed`
)

// reloading is a tlsd with a configuration file that changes.
type reloading struct {
	t       *testing.T
	d       *daemon
	s       store
	dir     string
	backend string // of lines
	addr    string // of the first listener
}

func newReloading(t *testing.T) *reloading {
	t.Helper()
	lines := listenOn(t, "tcp", "127.0.0.1:0")
	echoLines(t, lines)
	return &reloading{
		t: t, dir: t.TempDir(), addr: freeAddr(t), backend: "tcp://" + lines.Addr().String(),
		s: newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}}),
	}
}

// listener returns one before the backend of lines.
func (r *reloading) listener(addr string, more ...string) string {
	return fmt.Sprintf("  - {%s}\n", strings.Join(append([]string{"listen: " + addr, "backend: " + r.backend}, more...), ", "))
}

// configure replaces the configuration file.
func (r *reloading) configure(listeners string, more ...string) {
	r.t.Helper()
	r.write(fmt.Sprintf("keystores: [{path: %s, password_file: %s}]\nlisteners:\n%s%s\n", r.s.path, r.s.password, listeners, strings.Join(more, "\n")))
}

func (r *reloading) write(text string) { r.put("tlsd.yaml", []byte(text)) }

// put replaces a file by another.
func (r *reloading) put(name string, content []byte) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	writeFile(r.t, path+"~", content)
	if err := os.Rename(path+"~", path); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func (r *reloading) start() {
	r.t.Helper()
	r.d = startWith(r.t, options{addr: r.addr, args: []string{"--config", filepath.Join(r.dir, "tlsd.yaml")}})
}

// hangUp sends SIGHUP and waits until the log holds one more of line.
func (r *reloading) hangUp(line string) {
	r.t.Helper()
	before := r.d.count(line)
	if err := r.d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		r.t.Fatal(err)
	}
	r.until("the log has "+line, func() bool { return r.d.count(line) > before })
}

func (r *reloading) until(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("in vain waited until %s\n%s", what, r.d.log)
		}
	}
}

// at opens a connection to a listener, or says why not.
func (r *reloading) at(addr string) error {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", addr, clientOf(r.s))
	if err == nil {
		c.Close()
	}
	return err
}

// R10: a hang-up reads all anew; the process and its key process, open connections
// and sessions go on. Ten in a second are few reloads, of one line each.
func TestFaultR10_HangUp(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	r.configure(r.listener(r.addr))
	r.start()
	conf, key := clientOf(r.s), r.d.keyProcess(0)
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	open := r.d.openLine(conf)
	open.mustWork() // the ticket has come
	r.hangUp(reloadedLine)
	if n := r.d.count(reloadedLine); n != 1 {
		t.Errorf("%d lines of one hang-up", n)
	}
	open.mustWork()
	for range 10 {
		r.d.cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(90 * time.Millisecond)
	}
	r.until("the hang-ups are followed", func() bool { return r.d.count(reloadedLine) > 1 })
	if n := r.d.count(reloadedLine); n > 5 {
		t.Errorf("%d reloads for eleven hang-ups", n)
	}
	open.mustWork()
	again := r.d.openLine(conf)
	if again.mustWork(); !again.c.ConnectionState().DidResume {
		t.Error("the session did not survive")
	}
	if now := r.d.keyProcess(0); now != key {
		t.Error("another key process")
	}
}

// A changed file, without a hang-up: one listener is new, one is gone, and one has
// another backend and log level. What is open stays so.
func TestFaultConfigurationChanges(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	gone, added := freeAddr(t), freeAddr(t)
	r.configure(r.listener(r.addr)+r.listener(gone), "drain: {timeout: 3s}")
	r.start()
	key := r.d.keyProcess(0)
	open := r.d.openLine(clientOf(r.s))
	leaving, err := tls.Dial("tcp", gone, clientOf(r.s))
	if err != nil {
		t.Fatal(err)
	}
	defer leaving.Close()
	mustEchoOver(t, leaving)
	r.configure("  - {listen: "+r.addr+", backend: \"builtin:hello\"}\n"+r.listener(added), "drain: {timeout: 3s}", "log: {debug: [server]}")
	r.until("it listens at the new address", func() bool { return r.at(added) == nil })
	mustEchoOver(t, leaving)
	open.mustWork()
	r.until("the old address is free", func() bool {
		l, err := net.Listen("tcp", gone)
		if err == nil {
			l.Close()
		}
		return err == nil
	})
	r.until("the other backend answers", func() bool { return request(t, r.d, "-tls1_3") == "ok" })
	r.until("the log level counts", func() bool { return r.d.count(`"level":"debug","ts"`)+r.d.count(`"level":"debug"`) > 0 })
	r.until("the listener that is gone has drained", func() bool {
		_ = leaving.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := leaving.Read(make([]byte, 1))
		late, ok := err.(net.Error)
		return err != nil && !(ok && late.Timeout())
	})
	open.mustWork()
	if r.d.keyProcess(0) != key {
		t.Error("another key process, though nothing of it has changed")
	}
	if r.d.count(`"level":"error"`) > 0 {
		t.Errorf("errors:\n%s", r.d.log)
	}
}

// Whatever is wrong, everything stays as it was, and one line says why.
func TestFaultConfigurationIsWrong(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	r.configure(r.listener(r.addr))
	r.start()
	key := r.d.keyProcess(0)
	open := r.d.openLine(clientOf(r.s))
	other := listenOn(t, "tcp", "127.0.0.1:0")
	defer other.Close()
	taken, added := other.Addr().String(), freeAddr(t)
	damaged := r.put("damaged.p12", []byte("0damaged"))
	for name, tt := range map[string]struct{ text, want string }{
		"yaml":        {"listeners: [", "tlsd.yaml"},
		"unknown-key": {"listener: []", "listener"},
		"address":     {r.listener("nowhere"), "nowhere"},
		"in-use":      {r.listener(r.addr, "client_auth: optional", "client_ca: "+r.s.ca) + r.listener(added) + r.listener(taken), "address already in use"},
		"trust-store": {r.listener(r.addr, "client_auth: require", "client_ca: "+damaged) + r.listener(added), "damaged.p12"},
		"no-list":     {r.listener(r.addr, "client_auth: require", "client_ca: "+r.s.ca, "client_crl: "+damaged), "damaged.p12"},
		"alias":       {r.listener(r.addr, "alias: nobody") + r.listener(added), "nobody"},
	} {
		lines := r.d.count(`"level":"error"`)
		if strings.HasPrefix(tt.text, "listener") {
			r.write(tt.text)
		} else {
			r.configure(tt.text)
		}
		r.hangUp(failedLine)
		if n := r.d.count(`"level":"error"`) - lines; n != 1 {
			t.Errorf("%s: %d lines at ERROR", name, n)
		}
		last := r.d.log.String()
		if last = last[strings.LastIndex(last, failedLine):]; !strings.Contains(last, tt.want) {
			t.Errorf("%s: no %q in %s", name, tt.want, last)
		}
		if err := r.at(r.addr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.at(added) == nil {
			t.Errorf("%s: it listens at an address of a configuration that was refused", name)
		}
		open.mustWork()
	}
	keys := childrenOf(r.d.cmd.Process.Pid)
	if !slices.Equal(keys, []int{key}) {
		t.Errorf("processes %v, before %d", keys, key)
	}
	r.configure(r.listener(r.addr) + r.listener(added))
	r.until("a good configuration is taken", func() bool { return r.at(added) == nil })
}

// Something else than a file in the place of the configuration is an error, however
// large it is or however long one would wait for it, and not taken for no change.
func TestFaultConfigurationIsNoFile(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	r.configure(r.listener(r.addr))
	r.start()
	config := filepath.Join(r.dir, "tlsd.yaml")
	for name, replace := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"huge": func(path string) error { // 1 TiB, of which nothing is on disk
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		if err := errors.Join(os.Remove(config), replace(config)); err != nil {
			t.Fatal(err)
		}
		r.hangUp(failedLine)
		if err := r.at(r.addr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(config); err != nil { // it may be the directory
		t.Fatal(err)
	}
	r.configure(r.listener(r.addr))
	r.hangUp(reloadedLine)
}

// Other keystores bring another key process, which takes over when it is ready;
// the old one ends, and no connection does.
func TestFaultOtherKeystores(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	limits := "limits: {handshake_timeout: 1s}"
	r.configure(r.listener(r.addr), limits)
	r.start()
	key, before := r.d.keyProcess(0), r.s
	open := r.d.openLine(clientOf(before))
	r.s = newStore(t, testca.Spec{Name: "other", DNS: []string{"w.test"}})
	r.configure(r.listener(r.addr), limits)
	r.until("the other keystore is served", func() bool { return served(t, r.d, "w.test").Subject.CommonName == "other" })
	now := r.d.keyProcess(key)
	r.until("the old key process has ended", func() bool { return slices.Equal(childrenOf(r.d.cmd.Process.Pid), []int{now}) })
	open.mustWork()
	if err := r.at(r.addr); err != nil {
		t.Error(err)
	}
	// The keystore is there no more: what runs stays.
	r.s.path += ".gone"
	r.configure(r.listener(r.addr), limits)
	r.hangUp(failedLine)
	if got := served(t, r.d, "w.test").Subject.CommonName; got != "other" {
		t.Errorf("%q is served after a reload that failed", got)
	}
	if keys := childrenOf(r.d.cmd.Process.Pid); !slices.Equal(keys, []int{now}) {
		t.Errorf("processes %v, before %d", keys, now)
	}
}

// What only a restart takes is named, once.
func TestFaultSettingsThatTakeARestart(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	r.configure(r.listener(r.addr))
	r.start()
	r.configure(r.listener(r.addr), "metrics: {listen: "+freeAddr(t)+"}")
	r.hangUp(reloadedLine)
	r.hangUp(reloadedLine)
	if n := len(r.d.awaitLines(1, `"changed settings that take a restart","keys":["metrics.listen"]`)); n != 1 {
		t.Errorf("%d lines\n%s", n, r.d.log)
	}
}

// A keystore that can't be used is said by one line at ERROR, of the key process.
func TestFaultKeystoreIsWrongAtReload(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"sunx509", "pkixcached"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			r := newReloading(t)
			r.configure(r.listener(r.addr), "keymanager: "+tier)
			r.start()
			writeFile(t, r.s.path, []byte("0damaged"))
			r.hangUp(failedLine)
			if n := len(r.d.awaitLines(1, `"level":"error"`, "keystore reload failed")); n != 1 || r.d.count(`"level":"error"`) != 1 {
				t.Errorf("%d lines at ERROR\n%s", n, r.d.log)
			}
			if err := r.at(r.addr); err != nil {
				t.Error(err)
			}
		})
	}
}
