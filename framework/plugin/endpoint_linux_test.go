// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// testEndpoint is a process that is an endpoint.
type testEndpoint struct {
	endpointSetup
	t      *testing.T
	dir    string
	uid    int // of the process
	attr   *syscall.SysProcAttr
	cmd    *exec.Cmd
	stderr *lockedBuffer
}

// newEndpoint prepares an endpoint of another user, if this one is root.
func newEndpoint(t *testing.T) *testEndpoint {
	t.Helper()
	e := &testEndpoint{t: t, dir: shortTempDir(t)}
	e.attr, e.uid = asNobody()
	if err := os.Chmod(e.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(e.dir, "run")
	e.Socket, e.Users = filepath.Join(run, "km.sock"), []int{os.Getuid()}
	if err := errors.Join(os.Mkdir(run, 0o755), os.Chown(run, e.uid, -1)); err != nil {
		t.Fatal(err)
	}
	e.Sources = []keymanager.Source{sourceFor(t, e.dir, e.uid)}
	return e
}

// start starts it and waits until it serves, or has ended.
func (e *testEndpoint) start() {
	e.t.Helper()
	setup, err := json.Marshal(e.endpointSetup)
	if err != nil {
		e.t.Fatal(err)
	}
	e.cmd, e.stderr = exec.Command("/proc/self/exe"), &lockedBuffer{}
	e.cmd.Env = append(os.Environ(), endpointMarker+"="+string(setup))
	e.cmd.Stderr, e.cmd.Dir = e.stderr, e.dir
	e.cmd.SysProcAttr = e.attr
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(e.kill)
	eventually(e.t, "the endpoint", func() bool { return strings.Contains(e.stderr.String(), "endpoint ready") || e.ended() })
}

func (e *testEndpoint) ended() bool { return e.cmd.ProcessState != nil || !alive(e.cmd.Process.Pid) }

func (e *testEndpoint) kill() {
	if e.cmd.ProcessState == nil {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
	}
}

// dial connects to it as a front.
func (e *testEndpoint) dial(opt DialOptions) (*Endpoint, *observer.ObservedLogs) {
	e.t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	opt.Log, opt.PluginWait = zap.New(core), 10*time.Second
	front, err := Dial(e.t.Context(), e.Socket, opt)
	if err != nil {
		e.t.Fatalf("%v\n%s", err, e.stderr)
	}
	e.t.Cleanup(func() {
		if err := front.Close(); err != nil {
			e.t.Error(err)
		}
	})
	return front, logs
}

func selectFrom(t *testing.T, m keymanager.KeyManager) *keymanager.Credential {
	t.Helper()
	cred, err := m.Select(t.Context(), serverHello("a.example"))
	if err != nil {
		t.Fatal(err)
	}
	return cred
}

func mustSignBy(t *testing.T, m keymanager.KeyManager) *keymanager.Credential {
	t.Helper()
	c := selectFrom(t, m)
	if _, err := c.Key.Sign(t.Context(), handshakeRequest()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEndpointServesTheUsersThatItAdmits(t *testing.T) {
	e := newEndpoint(t)
	before := uptime()
	e.start()
	front, _ := e.dial(DialOptions{Aliases: []string{"PAIR"}})
	mustSignBy(t, front)
	if d := front.Describe(); d.Name != "test" || !d.Isolated || d.PID != e.cmd.Process.Pid {
		t.Errorf("it describes itself as %+v", d)
	}
	if s := front.Status(); !s.Up || s.Err != nil || s.Restarts != 0 {
		t.Errorf("status %+v", s)
	}
	if g := front.Generation(); g < before || g > uptime() {
		t.Errorf("generation %d is not the milliseconds from the machine's start to the endpoint's", g)
	}
	if err := front.SetLogLevels(t.Context(), map[string]string{logging.KeyManager: "debug"}); err != nil {
		t.Errorf("set log levels: %v", err)
	}
	if err := front.Reload(t.Context()); err != nil {
		t.Errorf("reload: %v", err)
	}
	findings, err := front.Isolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"users": os.Getuid() == 0, "dumpable": true, "core_dumps": true, "socket": true} {
		if f := find(t, findings, name); f.OK != ok {
			t.Errorf("%+v", f)
		}
	}
	if info, err := os.Stat(e.Socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket: %v, %v", info, err)
	}
}

// A front may work in another directory, where a relative path would lead to
// nothing, and the keystore pass for one that the front can't open.
func TestEndpointNamesItsFilesInFull(t *testing.T) {
	e := newEndpoint(t)
	path := e.Sources[0].Paths[0]
	for i, p := range e.Sources[0].Paths {
		rel, err := filepath.Rel(e.dir, p)
		if err != nil {
			t.Fatal(err)
		}
		e.Sources[0].Paths[i] = rel
	}
	e.start()
	front, _ := e.dial(DialOptions{})
	mustSignBy(t, front)
	findings, err := front.Isolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := find(t, findings, "keystore"); !strings.Contains(f.Value, path) {
		t.Errorf("%+v, want it to name %s", f, path)
	}
}

func TestEndpointClosesOthersBeforeTheySpeak(t *testing.T) {
	e := newEndpoint(t)
	e.Users = []int{os.Getuid() + 12345}
	e.start()
	conn, err := net.Dial("unix", e.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if front, err := Dial(ctx, e.Socket, DialOptions{}); err == nil {
		front.Close()
		t.Error("admitted")
	} else if !strings.Contains(err.Error(), "does it admit user") {
		t.Errorf("dial: %v", err)
	}
	eventually(t, "the line", func() bool { return strings.Contains(e.stderr.String(), "connection refused") })
}

func TestEndpointRefusesToBeConfigured(t *testing.T) {
	e := newEndpoint(t)
	e.start()
	front, _ := e.dial(DialOptions{})
	_, err := front.up().api.Configure(t.Context(), configureToProto(Spec{Sources: e.Sources}, 1))
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("configure: %v", err)
	}
	mustSignBy(t, front)
}

func TestFrontConnectsAgain(t *testing.T) {
	e := newEndpoint(t)
	e.start()
	front, logs := e.dial(DialOptions{})
	first := mustSignBy(t, front)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := make(chan uint64, 100)
	go func() { _ = front.Watch(ctx, func(c keymanager.Change) { watched <- c.Generation }) }()
	if g := <-watched; g != first.Generation {
		t.Errorf("watch began with generation %d, want %d", g, first.Generation)
	}

	e.kill() // leaves its socket behind
	eventually(t, "the loss", func() bool { return !front.Status().Up && !front.Status().Watched })
	if err := front.Status().Err; err == nil {
		t.Error("no error says why it is down")
	}
	signed := make(chan *keymanager.Credential, 1)
	go func() { // waits
		c, err := front.Select(t.Context(), serverHello("a.example"))
		if err == nil {
			_, err = c.Key.Sign(t.Context(), handshakeRequest())
		}
		if err != nil {
			t.Error(err)
			c = new(keymanager.Credential)
		}
		signed <- c
	}()
	e.start()
	again := <-signed
	if again.Generation <= first.Generation {
		t.Errorf("generation %d after %d", again.Generation, first.Generation)
	}
	if _, err := first.Key.Sign(t.Context(), handshakeRequest()); err != nil {
		t.Errorf("a key chosen before: %v", err)
	}
	if g := <-watched; g != again.Generation {
		t.Errorf("watch went on with generation %d, want %d", g, again.Generation)
	}
	if s := front.Status(); !s.Up || s.Restarts != 1 || s.PID != e.cmd.Process.Pid {
		t.Errorf("status %+v", s)
	}

	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("on SIGTERM it ended with %v\n%s", err, e.stderr)
	}
	if _, err := os.Lstat(e.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its socket is left: %v", err)
	}
	eventually(t, "the line", func() bool { return logs.FilterMessage("endpoint lost").Len() >= 2 })
}

func TestOnlyTheOwnerOfTheSocketIsBelieved(t *testing.T) {
	testca.Root(t, "to be two users")
	e := newEndpoint(t)
	e.start()
	if err := errors.Join(os.Chown(e.Socket, 1, -1), os.Chown(filepath.Dir(e.Socket), 0, -1)); err != nil {
		t.Fatal(err)
	}
	_, err := Dial(t.Context(), e.Socket, DialOptions{})
	if err == nil || !strings.Contains(err.Error(), "who is not believed") {
		t.Errorf("dial: %v", err)
	}
}

// In a user namespace, one number stands for all users that have none there:
// whoever admits or believes it admits or believes all of them.
func TestUsersWithoutANumberAreNobody(t *testing.T) {
	for _, tc := range []struct {
		uid           int
		number, known string
		many          bool
	}{
		{65534, "65534\n", "         0          0 4294967295\n", false},
		{65534, "65534\n", "         0     100000      65536\n", true},
		{65534, "65534\n", "0 1000 1\n1 100000 65536\n", true},
		{65534, "65533\n", "0 100000 65536\n", false},
		{65533, "65533\n", "0 100000 65536\n", true},
		{1000, "65534\n", "0 100000 65536\n", false},
		{65534, "", "", true},
	} {
		if got := isOverflow(tc.uid, tc.number, tc.known); got != tc.many {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	e := newEndpoint(t)
	e.Users = []int{65534}
	self := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	e.attr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: self}
	if err := (&exec.Cmd{Path: "/bin/true", SysProcAttr: e.attr}).Run(); err != nil {
		t.Skipf("NOT CHECKED: no user namespaces here: %v", err)
	}
	e.start()
	if !strings.Contains(e.stderr.String(), "has no number in this user namespace") {
		t.Errorf("user 65534 is admitted in a user namespace without it: %s", e.stderr)
	}
}

func TestEndpointReadsItsOwnTrustStoresOnly(t *testing.T) {
	e := newEndpoint(t)
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	own, other := filepath.Join(e.dir, "own.p12"), filepath.Join(e.dir, "other.pem")
	testca.WritePKCS12(t, own, "secret", testca.StoreEntry{Alias: "ca", Cert: ca, Trusted: true})
	pw := keymanager.Secret("secret")
	e.Trust = []TrustFile{{Path: own, Password: keymanager.PasswordRef{File: filepath.Join(e.dir, "pass")}}}
	for path, content := range map[string][]byte{
		other: ca.CertPEM(), filepath.Join(e.dir, "pass"): []byte(pw), filepath.Join(e.dir, "both.pem"): append(ca.CertPEM(), ca.KeyPEM()...),
	} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(own, 0o644); err != nil {
		t.Fatal(err)
	}
	e.start()
	front, _ := e.dial(DialOptions{})
	for _, path := range []string{own, other} {
		ders, _, err := front.Trust(t.Context(), path, "", keymanager.PasswordRef{})
		if err != nil || len(ders) != 1 || string(ders[0]) != string(ca.DER) {
			t.Errorf("trust store %s: %d certificates, %v", path, len(ders), err)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(e.dir, "both.pem"):  "holds a private key",
		filepath.Join(e.dir, "pass"):      "holds no certificate in PEM",
		filepath.Join(e.dir, "gone"):      "no such file",
		filepath.Join(e.dir, "run", ".."): "no regular file",
	} {
		if _, _, err := front.Trust(t.Context(), path, "", keymanager.PasswordRef{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("trust store %s: %v, want %q", path, err, want)
		}
	}
	if _, _, err := front.Trust(t.Context(), other, "jks", keymanager.PasswordRef{}); err == nil || !strings.Contains(err.Error(), "--client-ca of tlsd keymanager serve") {
		t.Errorf("a type that only an endpoint reads: %v", err)
	}
}

func TestEndpointWithoutADemandedEntryIsRefused(t *testing.T) {
	e := newEndpoint(t)
	e.start()
	_, err := Dial(t.Context(), e.Socket, DialOptions{Aliases: []string{"pair", "site"}})
	if err == nil || !strings.Contains(err.Error(), `no entry "site"; there are ["pair"]`) || errors.Is(err, ErrUnavailable) {
		t.Errorf("dial: %v", err)
	}
}

func TestEndpointIsNotThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Dial(ctx, filepath.Join(t.TempDir(), "none"), DialOptions{})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "is tlsd keymanager serve running?") {
		t.Errorf("dial: %v", err)
	}
}

// An endpoint listens while it opens its keystores. A front that is not answered
// by then is to be started again, as where nobody is there.
func TestEndpointThatIsNotReadyIsNotThereYet(t *testing.T) {
	l, err := listenEndpoint(filepath.Join(shortTempDir(t), "run", "km.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = Dial(ctx, l.Addr().String(), DialOptions{})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "still opening its keystores?") {
		t.Errorf("dial: %v", err)
	}
}

func TestSocketOfAnEndpoint(t *testing.T) {
	dir := shortTempDir(t)
	path := filepath.Join(dir, "run", "km.sock")
	l, err := listenEndpoint(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("directory made: %v, %v", info, err)
	}
	if _, err := listenEndpoint(path); err == nil || !strings.Contains(err.Error(), "another process serves it") {
		t.Errorf("a socket that is served: %v", err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if l, err = listenEndpoint(path); err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenEndpoint(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file: %v", err)
	}
	os.Remove(path)
	for mode, want := range map[os.FileMode]string{0o777 | os.ModeSticky: "everybody may write", 0o770: "its group may write"} {
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := listenEndpoint(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a directory of mode %v: %v, want %q", mode, err, want)
		}
	}
	if _, err := listenEndpoint(filepath.Join(dir, strings.Repeat("x", 200), "s")); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a path too long: %v", err)
	}
	if _, err := socketOwner(path); err == nil {
		t.Error("no socket, and yet an owner")
	}
}
