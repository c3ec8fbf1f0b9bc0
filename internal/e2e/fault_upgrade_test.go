// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// upgradable is a lineage with an HTTP listener, one for bytes and a socket file.
type upgradable struct {
	*lineage
	web, echo, file string // addresses
	metrics         string
	store           store
	client          *tls.Config
	release         chan struct{} // lets requests for /slow be answered
}

const drainTimeout = 5 * time.Second // with all clients at work

func startUpgradable(t *testing.T) *upgradable {
	t.Helper()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	dir, err := os.MkdirTemp("", "e2e") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	u := &upgradable{
		web: freeAddr(t), echo: freeAddr(t), file: filepath.Join(dir, "s"), metrics: freeAddr(t),
		store: s, client: clientOf(s), release: make(chan struct{}),
	}
	web, lines := listenOn(t, "tcp", "127.0.0.1:0"), listenOn(t, "tcp", "127.0.0.1:0")
	serveHTTP(t, web, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-u.release
		}
		io.WriteString(w, "well")
	}))
	echoLines(t, lines)
	u.lineage = startLineage(t, fmt.Sprintf(`keystores: [{path: %s, password_file: %s}]
listeners:
  - {listen: "%s", backend: "http://%s"}
  - {listen: "%s", backend: "tcp://%s"}
  - {listen: "unix:%s"}
metrics: {listen: "%s"}
drain: {timeout: %v}
`, s.path, s.password, u.web, web.Addr(), u.echo, lines.Addr(), u.file, u.metrics, drainTimeout))
	return u
}

func clientOf(s store) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(s.root.Cert)
	return &tls.Config{ServerName: "w.test", RootCAs: pool}
}

// echoLines runs a backend that sends back each line as it comes.
func echoLines(t *testing.T, l net.Listener) {
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
}

// get asks for path on a connection of its own.
func (u *upgradable) get(path string) error {
	c := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{TLSClientConfig: u.client, DisableKeepAlives: true}}
	resp, err := c.Get("https://" + u.web + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != "well" {
		err = fmt.Errorf("%s: %q", resp.Status, body)
	}
	return err
}

// getByFile does the same by the socket file.
func (u *upgradable) getByFile() error {
	c, err := net.Dial("unix", u.file)
	if err != nil {
		return err
	}
	defer c.Close()
	return tls.Client(c, u.client).Handshake()
}

// getHealth asks whether tlsd is alive.
func (u *upgradable) getHealth() error {
	c := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + u.metrics + "/healthz")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// load has clients connect again and again until it is ended, which tells how
// many did and what went wrong.
func (u *upgradable) load() (served *atomic.Int64, end func() []error) {
	served = new(atomic.Int64)
	var (
		stop    = make(chan struct{})
		clients sync.WaitGroup
		mu      sync.Mutex
		errs    []error
	)
	get := func() error { return u.get("/") }
	for _, ask := range []func() error{get, get, get, u.getByFile, u.getHealth} {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				if err := ask(); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
				served.Add(1)
			}
		})
	}
	return served, func() []error {
		close(stop)
		clients.Wait()
		return errs[:min(len(errs), 5)] // more would say the same
	}
}

// TestFaultUpgrade replaces tlsd three times under load. No connection is refused
// or reset, a request under way is answered, a client that was slow to begin is
// served, and a connection that is held ends with the old process's drain.
func TestFaultUpgrade(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t)
	served, end := u.load()
	for round := range 3 {
		t.Run(fmt.Sprint("upgrade", round+1), func(t *testing.T) {
			u.install(bin("tlsd"))
			old := u.pid()
			keys := childrenOf(old)
			slow := make(chan error, 1)
			go func() { slow <- u.get("/slow") }()
			silent, err := net.Dial("tcp", u.web)
			if err != nil {
				t.Fatal(err)
			}
			held := u.hold(t)
			before := served.Load()

			now := u.upgrade()
			if !sameFile(t, fmt.Sprintf("/proc/%d/exe", now), u.exe) {
				t.Errorf("process %d doesn't run what lies at %s", now, u.exe)
			}
			if err := tls.Client(silent, u.client).Handshake(); err != nil {
				t.Errorf("a client that connected before and spoke after: %v", err)
			}
			silent.Close()
			select {
			case u.release <- struct{}{}:
				err = <-slow
			case err = <-slow: // it came to no backend
			}
			if err != nil {
				t.Errorf("the request under way: %v", err)
			}
			held.say(t, "still here")
			await(t, "connection of the new process", served.Load, func(n int64) bool { return n > before+20 })
			if round == 0 {
				if err := <-eof(held); err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the connection that was held: %v", err)
				}
			}
			held.Close()
			if left := u.pid(); left != now {
				t.Errorf("process %d is left, not %d", left, now)
			}
			for _, pid := range keys {
				await(t, "end of the old key process", func() bool { return running(pid) }, func(r bool) bool { return !r })
			}
		})
	}
	errs := end()
	t.Logf("%d connections", served.Load())
	for _, err := range errs {
		t.Errorf("of %d: %v", served.Load(), err)
	}
	if n := len(childrenOf(u.pid())); n != 1 {
		t.Errorf("%d children, want the key process", n)
	}
	u.end()
	if _, err := os.Lstat(u.file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left: %v", err)
	}
}

// heldConn is a connection to the echoing backend.
type heldConn struct {
	*tls.Conn
	lines *bufio.Reader
}

func (u *upgradable) hold(t *testing.T) heldConn {
	t.Helper()
	c, err := tls.Dial("tcp", u.echo, u.client)
	if err != nil {
		t.Fatal(err)
	}
	h := heldConn{c, bufio.NewReader(c)}
	h.say(t, "hello")
	return h
}

func (h heldConn) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(h, line); err != nil {
		t.Errorf("the connection that is held: %v", err)
	}
	if got, err := h.lines.ReadString('\n'); got != line+"\n" {
		t.Errorf("the connection that is held: %q, %v", got, err)
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

// TestFaultUpgradeThatFails has executables and configurations take over that
// can't. The old process goes on and says why, and a good one takes over after.
func TestFaultUpgradeThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		install func(u *upgradable)
		want    string
	}{
		"exits":     {func(u *upgradable) { u.installBytes([]byte("#!/bin/sh\nexit 1\n")) }, "exit status 1"},
		"no_binary": {func(u *upgradable) { u.installBytes([]byte("\x7fELF and no more")) }, "exec format error"},
		"missing":   {func(u *upgradable) { os.Remove(u.exe) }, "no such file"},
		"configuration": {func(u *upgradable) {
			text, _ := os.ReadFile(u.config)
			writeFile(u.t, u.config, append(text, "nonsense: 1\n"...))
		}, "nonsense: unknown key"},
		// It has taken sockets over by then, which the old process listens at.
		"address": {func(u *upgradable) {
			taken := listenOn(u.t, "tcp", "127.0.0.1:0")
			u.t.Cleanup(func() { taken.Close() })
			text, _ := os.ReadFile(u.config)
			writeFile(u.t, u.config, bytes.Replace(text, []byte("metrics:"), fmt.Appendf(nil, "  - {listen: %q}\nmetrics:", taken.Addr()), 1))
		}, "address already in use"},
		// It has a key process and serves somewhere, but not here.
		"hangs": {func(u *upgradable) {
			u.installBytes(fmt.Appendf(nil, "#!/bin/sh\nunset TABLEFLIP_HAS_PARENT_7DIU3\nexec %s --keystore %s --keystore-password-file %s --listen %s\n",
				bin("tlsd"), u.store.path, u.store.password, freeAddr(u.t)))
		}, "did not serve within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := startUpgradable(t)
			served, end := u.load()
			config, _ := os.ReadFile(u.config)
			old := u.pid()
			tc.install(u)
			u.signal(old, syscall.SIGUSR2)
			u.awaitLog("upgrade failed: this process goes on", 1)
			if !strings.Contains(u.logged(), tc.want) {
				t.Errorf("no %q in the log", tc.want)
			}
			before := served.Load()
			await(t, "connection after that", served.Load, func(n int64) bool { return n > before+20 })
			if now := u.pid(); now != old {
				t.Errorf("process %d serves, not %d", now, old)
			}
			await(t, "key process alone", func() []int { return childrenOf(old) }, func(c []int) bool { return len(c) == 1 })

			writeFile(t, u.config, config)
			u.install(bin("tlsd"))
			if now := u.upgrade(); now == old {
				t.Error("the good one didn't take over")
			}
			for _, err := range end() {
				t.Error(err)
			}
		})
	}
}

// TestFaultEndDuringUpgrade ends tlsd while a new process is starting: both end. To
// ask for an upgrade once more before is no upgrade that fails.
func TestFaultEndDuringUpgrade(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t)
	mark := filepath.Join(u.tmp, "started")
	u.installBytes(fmt.Appendf(nil, "#!/bin/sh\n: >%s\nexec sleep 300\n", mark))
	old := u.pid()
	u.signal(old, syscall.SIGUSR2)
	await(t, "start of the new one", func() error { _, err := os.Stat(mark); return err }, func(err error) bool { return err == nil })
	u.signal(old, syscall.SIGUSR2)
	u.awaitLog("upgrade: one is under way already", 1)
	if strings.Contains(u.logged(), "upgrade failed") {
		t.Error("the second order is said to have failed")
	}
	all := childrenOf(old)
	if len(all) != 2 {
		t.Errorf("children %v, want key process and new process", all)
	}
	os.Remove(mark)
	u.signal(old, syscall.SIGTERM)
	for _, pid := range append(all, old) {
		await(t, "end", func() bool { return running(pid) }, func(r bool) bool { return !r })
	}
}

// TestUpgradeRefused: what a new process could not read again, or what would end
// with this one, is said at once, and this one goes on.
func TestUpgradeRefused(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"demo":       {nil, "a throw-away keystore ends with its process"},
		"descriptor": {[]string{"--keystore", s.path, "--keystore-password-file", "/dev/stdin"}, `keystores[0].password_file is \"/dev/stdin\", a descriptor of this process`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startWith(t, options{args: tc.args, stdin: s.password})
			d.awaitLog("listening")
			if err := d.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			d.awaitLog("upgrade refused: this process goes on")
			d.awaitLog(tc.want)
			served(t, d, "w.test")
		})
	}
}
