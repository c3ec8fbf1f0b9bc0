// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// Users that own nothing else on this machine, and the group that front and key
// process have in common.
const (
	keysUser     = 64531
	frontUser    = 64532
	strangerUser = 64533
	sharedGroup  = 64534
)

// twoUsers is a key process and a front of it, each of a user of its own where
// this one may say so (root), and otherwise both of this one.
type twoUsers struct {
	*testing.T
	dir, keystore, socket string
	root                  *testca.Cert
	keys, front           *process
	addr                  string
}

// process is a program that runs as some user.
type process struct {
	*exec.Cmd
	log    *buffer
	exited chan error
}

func isRoot() bool { return os.Getuid() == 0 }

func newTwoUsers(t *testing.T) *twoUsers {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	u := &twoUsers{T: t, dir: dir, root: rootOf(t, testca.P256), addr: freeAddr(t)}
	u.must(os.Chmod(binDir, 0o755)) // the programs are other users' to run
	u.must(os.Chmod(dir, 0o755))
	for _, d := range []string{"keys", "run"} {
		u.must(os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	u.keystore, u.socket = filepath.Join(dir, "keys", "s.p12"), filepath.Join(dir, "run", "km.sock")
	u.store("first")
	if isRoot() {
		u.must(os.Chown(filepath.Join(dir, "keys"), keysUser, -1))
		u.must(os.Chown(filepath.Join(dir, "run"), keysUser, sharedGroup))
	}
	u.must(os.Chmod(filepath.Join(dir, "run"), 0o750))
	return u
}

func (u *twoUsers) must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

// store puts a keystore with a certificate of this common name in place.
func (u *twoUsers) store(name string) {
	u.Helper()
	pass := filepath.Join(filepath.Dir(u.keystore), "pass")
	u.must(os.WriteFile(pass, []byte("secret of the store"), 0o600))
	leaf := u.root.Issue(u.T, testca.Spec{Name: name, DNS: []string{"w.test"}})
	testca.WritePKCS12(u.T, u.keystore+".new", "secret of the store", testca.StoreEntry{Alias: "site", Cert: leaf})
	u.must(os.Chmod(u.keystore+".new", 0o600))
	if isRoot() {
		u.must(errors.Join(os.Chown(u.keystore+".new", keysUser, -1), os.Chown(pass, keysUser, -1)))
	}
	u.must(os.Rename(u.keystore+".new", u.keystore))
}

// as makes a program one of a user's, where this one may.
func as(uid int, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/nowhere"}
	cmd.Dir = "/"
	if isRoot() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: sharedGroup}}
	}
	return cmd
}

func (u *twoUsers) start(uid int, args ...string) *process {
	u.Helper()
	p := &process{Cmd: as(uid, bin("tlsd"), append(args, "--log-format", "json")...), log: &buffer{}, exited: make(chan error, 1)}
	p.Stderr = p.log
	testca.StartGuarded(u.T, p.Cmd)
	go func() { p.exited <- p.Wait() }()
	u.Cleanup(func() {
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // and what has taken its place
		p.exited <- <-p.exited
	})
	return p
}

// until waits for a line of a program's log.
func (u *twoUsers) until(p *process, text string) {
	u.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(p.log.String(), text) {
			return
		}
	}
	u.Fatalf("no %q in the log:\n%s", text, p.log)
}

func admitted() int {
	if isRoot() {
		return frontUser
	}
	return os.Getuid()
}

func (u *twoUsers) startKeys(args ...string) {
	u.Helper()
	u.keys = u.start(keysUser, append([]string{"keymanager", "serve", "--keystore", u.keystore,
		"--keystore-password-file", filepath.Join(filepath.Dir(u.keystore), "pass"),
		"--listen", "unix:" + u.socket, "--allow-user", fmt.Sprint(admitted())}, args...)...)
	u.until(u.keys, "endpoint ready")
}

func (u *twoUsers) startFront(args ...string) {
	u.Helper()
	u.front = u.start(frontUser, append([]string{"--keymanager", "unix:" + u.socket, "--listen", u.addr}, args...)...)
	u.until(u.front, `"logger":"server","msg":"listening"`)
}

// served makes a handshake and returns the common name of the leaf.
func (u *twoUsers) served() (string, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", u.addr, &tls.Config{RootCAs: u.root.Pool(), ServerName: "w.test"})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func (u *twoUsers) wantServed(name string) {
	u.Helper()
	if got, err := u.served(); err != nil || got != name {
		u.Errorf("served is %q (%v), want %q\nkey process:\n%s\nfront:\n%s", got, err, name, u.keys.log, u.front.log)
	}
}

// untilServed waits until a change has arrived.
func (u *twoUsers) untilServed(name string) {
	u.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got, _ := u.served(); got == name {
			return
		}
	}
	u.wantServed(name)
}

// end ends a program as an init system does.
func (u *twoUsers) end(p *process) {
	u.Helper()
	u.must(p.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.exited:
		p.exited <- err
		if err != nil {
			u.Errorf("ended with %v\n%s", err, p.log)
		}
	case <-time.After(20 * time.Second):
		u.Errorf("does not end\n%s", p.log)
	}
}

// The whole of it: a front that can't open the keystores serves with their keys,
// through whatever happens to them and to the process that holds them.
func TestFaultEndpointOfAnotherUser(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	config := filepath.Join(u.dir, "tlsd.yaml")
	u.must(os.WriteFile(config, []byte("plugin_wait: 9s\n"), 0o644)) // so long may a start take
	u.startKeys()
	u.startFront("--config", config)
	u.wantServed("first")

	if isRoot() {
		if out, err := as(frontUser, "cat", u.keystore).CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("the front's user reads the keystore: %v\n%.200s", err, out)
		}
		u.until(u.front, "the front can't open "+u.keystore+": permission denied")
		u.until(u.front, fmt.Sprintf(`"users":"front (%d), key process (%d)"`, frontUser, keysUser))
	}

	u.store("renamed") // seen without a signal
	u.untilServed("renamed")
	keys := filepath.Dir(u.keystore)
	u.must(os.RemoveAll(keys))
	u.wantServed("renamed")
	u.must(os.Mkdir(keys, 0o700))
	if isRoot() {
		u.must(os.Chown(keys, keysUser, -1))
	}
	u.store("anew") // in another directory of the same name
	u.untilServed("anew")
	u.store("signal")
	u.must(u.keys.Process.Signal(syscall.SIGHUP))
	u.until(u.keys, `"reloaded"`)
	u.untilServed("signal")

	u.must(u.keys.Process.Kill()) // leaves the socket
	u.until(u.front, "endpoint lost")
	u.store("after the kill")
	waits := make(chan string, 1)
	go func() {
		name, err := u.served()
		waits <- fmt.Sprint(name, err)
	}()
	time.Sleep(100 * time.Millisecond)
	u.startKeys()
	if got := <-waits; got != "after the kill<nil>" {
		t.Errorf("a handshake in the gap got %s\n%s", got, u.front.log)
	}

	u.end(u.keys)
	if _, err := os.Lstat(u.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	u.startKeys()
	u.untilServed("after the kill")
	u.end(u.front)
	u.end(u.keys)
	if strings.Contains(u.front.log.String()+u.keys.log.String(), "secret of the store") {
		t.Error("a password was logged")
	}
}

// What a confined front gave up, the process that takes its place lacks too, and
// doesn't need.
func TestFaultEndpointFrontIsUpgraded(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	u.startKeys()
	u.startFront()
	u.must(u.front.Process.Signal(syscall.SIGUSR2))
	u.until(u.front, "another process serves now")
	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(u.front.Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the process before goes on\n%s", u.front.log)
		}
	}
	u.wantServed("first")
}

func TestFaultEndpointAdmitsNobodyElse(t *testing.T) {
	testca.Root(t, "to be several users")
	t.Parallel()
	u := newTwoUsers(t)
	u.startKeys()
	for _, uid := range []int{strangerUser, keysUser, 0} {
		out, err := as(uid, bin("tlsd"), "check", "--keymanager", "unix:"+u.socket).CombinedOutput()
		if exitCode(err) != 2 || !strings.Contains(string(out), "does it admit user") {
			t.Errorf("user %d: %v\n%s", uid, err, out)
		}
	}
	u.until(u.keys, "connection refused")
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// What is wrong with a front of an endpoint is said before it listens.
func TestFaultEndpointRefused(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	u.startKeys()
	other := filepath.Join(u.dir, "other")
	u.must(os.WriteFile(other, []byte("no certificate"), 0o644))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"alias":    {[]string{"--alias", "shop"}, `there is no entry "shop"; there are ["site"]`},
		"keystore": {[]string{"--keystore", u.keystore}, "these are the endpoint's: keystores[0].path (flag --keystore)"},
		"trust":    {[]string{"--client-auth", "require", "--client-ca", other}, "only certificates in PEM can be read"},
	} {
		out, err := as(frontUser, bin("tlsd"), append([]string{"--keymanager", "unix:" + u.socket, "--listen", u.addr, "--log-format", "json"}, tc.args...)...).CombinedOutput()
		if exitCode(err) != 2 || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	u.end(u.keys)
	out, err := as(frontUser, bin("tlsd"), "--keymanager", "unix:"+u.socket, "--listen", u.addr, "--log-format", "json").CombinedOutput()
	if exitCode(err) != 1 || !strings.Contains(string(out), "is tlsd keymanager serve running?") {
		t.Errorf("nobody there: %v\n%s", err, out)
	}
}

// Trusted certificates come from the endpoint by its own password, or, in PEM,
// from a file that the front reads.
func TestFaultEndpointTrustStores(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	ca := rootOf(t, testca.P256)
	client := ca.Issue(t, testca.Spec{Name: "client", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	store, pass := filepath.Join(u.dir, "keys", "clients.p12"), filepath.Join(u.dir, "keys", "pass")
	testca.WritePKCS12(t, store, "secret of the store", testca.StoreEntry{Alias: "ca", Cert: ca, Trusted: true})
	if isRoot() {
		u.must(os.Chown(store, keysUser, -1))
	}
	pem := filepath.Join(u.dir, "clients.pem")
	u.must(os.WriteFile(pem, ca.CertPEM(), 0o644))
	u.startKeys("--client-ca", store, "--client-ca-password-file", pass)
	for _, path := range []string{store, pem} {
		u.startFront("--client-auth", "require", "--client-ca", path)
		conn, err := tls.Dial("tcp", u.addr, &tls.Config{
			RootCAs: u.root.Pool(), ServerName: "w.test",
			Certificates: []tls.Certificate{{Certificate: client.Chain(), PrivateKey: client.Key}},
		})
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, u.front.log)
		}
		fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		answer := make([]byte, 12)
		if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.0 200" {
			t.Errorf("%s: %q, %v\n%s", path, answer, err, u.front.log)
		}
		conn.Close()
		u.end(u.front)
	}
}
