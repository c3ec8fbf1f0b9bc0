// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// rowdyTier is the tier of the other tests, which misbehaves as its settings
// say once it is open.
func rowdyTier() keymanager.Tier {
	return keymanager.Tier{Name: "rowdy", Open: func(ctx context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
		var set struct{ Do string }
		if err := json.Unmarshal(env.Settings, &set); err != nil {
			return nil, err
		}
		env.Settings = nil
		km, err := openTest(ctx, env)
		if err == nil {
			err = misbehave(set.Do)
		}
		return km, err
	}}
}

func misbehave(how string) error {
	switch how {
	case "panic-line":
		fmt.Fprintln(os.Stderr, `{"@message":1}`)
		fmt.Fprintln(os.Stderr, `{"msg":"x","level":"fatal","logger":"audit"}`)
	case "long-line":
		_, err := os.Stderr.WriteString(strings.Repeat("x", 1<<20))
		return err
	case "binary":
		_, err := os.Stderr.Write([]byte("\x00\xff\x1b[2J\r\n\n\xfe"))
		return err
	case "flood":
		go func() {
			for {
				fmt.Fprintln(os.Stderr, "flood")
			}
		}()
	case "grandchild":
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 600")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "grandchild", cmd.Process.Pid)
	case "environment":
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), " "))
	case "freeze":
		for { // a stop can get lost while threads come and go
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}
	return nil
}

// hostTest is a host under test and what it logged.
type hostTest struct {
	*Host
	logs *observer.ObservedLogs
	dir  string // run directory's base
	leaf *testca.Cert
}

type hostSetup struct {
	cmd  Command
	spec Spec
	opt  HostOptions
}

// startHost starts a key process with one key entry for a.example, and checks
// at the end that nothing of it is left.
func startHost(t *testing.T, do string, change ...func(*hostSetup)) *hostTest {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	h := &hostTest{logs: logs, dir: shortTempDir(t)}
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "root"}), "a.example")
	h.leaf = leaf
	s := hostSetup{
		cmd:  Command{Tier: "rowdy"},
		spec: Spec{Sources: []keymanager.Source{src}, Settings: json.RawMessage(`{"do":"` + do + `"}`)},
		opt:  HostOptions{RunDir: h.dir, Log: zap.New(core), PluginWait: 10 * time.Second},
	}
	for _, f := range change {
		f(&s)
	}
	var err error
	if h.Host, err = Start(t.Context(), s.cmd, s.spec, s.opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pid := h.Describe().PID
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		h.checkNothingLeft(t, pid)
	})
	return h
}

// shortTempDir is t.TempDir for sockets, whose paths are short.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (h *hostTest) checkNothingLeft(t *testing.T, pid int) {
	t.Helper()
	if pid != 0 && syscall.Kill(-pid, 0) == nil {
		t.Errorf("process group %d is still there", pid)
	}
	if left, _ := os.ReadDir(h.dir); len(left) > 0 {
		t.Errorf("left in the run directory: %v", left)
	}
}

// mustSign has key sign a handshake message and verifies the signature.
func (h *hostTest) mustSign(t *testing.T, key keymanager.Key) {
	t.Helper()
	sig, err := key.Sign(t.Context(), handshakeRequest())
	if err != nil {
		t.Fatal(err)
	}
	verifyHandshake(t, h.leaf, sig)
}

func mustSelect(t *testing.T, h *Host) *keymanager.Credential {
	t.Helper()
	cred, err := h.Select(t.Context(), serverHello("a.example"))
	if err != nil {
		t.Fatal(err)
	}
	return cred
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

func (h *hostTest) logged(text string) bool {
	for _, e := range h.logs.All() {
		if strings.Contains(fmt.Sprint(e.LoggerName, " ", e.Message, " ", e.ContextMap()), text) {
			return true
		}
	}
	return false
}

func TestHostSelectsSignsListsAndReloads(t *testing.T) {
	h := startHost(t, "")
	cred := mustSelect(t, h.Host)
	if cred.Alias != "pair" || cred.Generation != 1 || !cred.Leaf.Equal(h.leaf.Cert) {
		t.Errorf("got %q of generation %d", cred.Alias, cred.Generation)
	}
	h.mustSign(t, cred.Key)

	entries, err := h.List(t.Context())
	if err != nil || len(entries) != 1 {
		t.Fatalf("list: %v, %v", entries, err)
	}
	h.mustSign(t, entries[0].Key)

	if err := h.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	if d := h.Describe(); d.Contract != ContractVersion || !d.Isolated || d.PID == os.Getpid() || d.PID == 0 {
		t.Errorf("description %+v", d)
	}
}

func TestHostPassesErrorsOnAsTheyAre(t *testing.T) {
	h := startHost(t, "")
	if _, err := h.Select(t.Context(), serverHello("b.example")); !errors.Is(err, keymanager.ErrNoCredential) {
		t.Errorf("select for another name: %v", err)
	}
	req := handshakeRequest()
	req.Message = append(req.Message, 'x')
	if _, err := mustSelect(t, h.Host).Key.Sign(t.Context(), req); !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("sign a byte too many: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Select(gone, serverHello("a.example")); !errors.Is(err, context.Canceled) {
		t.Errorf("select with a cancelled context: %v", err)
	}
}

func TestKilledProcessIsReplacedAndItsKeysSign(t *testing.T) {
	h := startHost(t, "")
	cred := mustSelect(t, h.Host)
	pid := h.Describe().PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.mustSign(t, cred.Key) // begun under the one, ended under the other
	again := mustSelect(t, h.Host)
	if again.Generation <= cred.Generation {
		t.Errorf("generation %d after %d", again.Generation, cred.Generation)
	}
	if now := h.Describe().PID; now == pid {
		t.Errorf("still process %d", pid)
	}
	if !h.logged("key process ended map[after") || !h.logged("signal: killed") {
		t.Error("the death was not logged with its status")
	}
}

func TestReplacementHasTheLevelsOfItsPredecessor(t *testing.T) {
	h := startHost(t, "")
	if h.logged("open at debug") {
		t.Fatal("debug lines without being asked")
	}
	if err := h.SetLogLevels(t.Context(), map[string]string{"keymanager": "debug"}); err != nil {
		t.Fatal(err)
	}
	if err := h.SetLogLevels(t.Context(), map[string]string{"keymanager": "loud"}); err == nil {
		t.Error("an unknown level was accepted")
	}
	_ = killProcess(h.Describe().PID)
	eventually(t, "the replacement's debug line", func() bool { return h.logged("keymanager open at debug") })
}

func TestCallsFailAfterPluginWait(t *testing.T) {
	src := filepath.Join(shortTempDir(t), "gone.pem")
	h := startHost(t, "", func(s *hostSetup) {
		s.opt.PluginWait = 100 * time.Millisecond
		copyFile(t, s.spec.Sources[0].Paths[1], src)
		s.spec.Sources[0].Paths[1] = src
	})
	cred := mustSelect(t, h.Host)
	if err := os.Remove(src); err != nil { // so that no replacement can open it
		t.Fatal(err)
	}
	_ = killProcess(h.Describe().PID)
	eventually(t, "the failed restart", func() bool { return h.logged("key process not started") })
	if _, err := cred.Key.Sign(t.Context(), handshakeRequest()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("sign without a key process: %v", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatchGoesOnAcrossRestarts(t *testing.T) {
	h := startHost(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan keymanager.Change, 10)
	ended := make(chan error)
	go func() { ended <- h.Watch(ctx, func(c keymanager.Change) { changes <- c }) }()
	if c := <-changes; c.Generation != 1 {
		t.Errorf("first change %+v", c)
	}
	_ = killProcess(h.Describe().PID)
	if c := <-changes; c.Generation != 2 {
		t.Errorf("change after the restart %+v", c)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWatchEndsWithTheHost(t *testing.T) {
	h := startHost(t, "")
	ended := make(chan error)
	seen := make(chan struct{})
	go func() { ended <- h.Watch(t.Context(), func(keymanager.Change) { close(seen) }) }()
	<-seen
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("watch: %v", err)
	}
	if _, err := h.Select(t.Context(), serverHello("a.example")); !errors.Is(err, ErrClosed) {
		t.Errorf("select after close: %v", err)
	}
	<-h.Done()
}

func TestWhateverAPluginWritesTheHostGoesOn(t *testing.T) {
	tests := []struct{ do, want string }{
		{"panic-line", "plugin.rowdy.audit x"},
		{"long-line", "cut:true"},
		{"binary", `\x1b[2J`},
		{"flood", "plugin output dropped"},
	}
	for _, tc := range tests {
		t.Run(tc.do, func(t *testing.T) {
			h := startHost(t, tc.do)
			eventually(t, tc.want, func() bool { return h.logged(tc.want) })
			h.mustSign(t, mustSelect(t, h.Host).Key)
		})
	}
}

func TestGrandchildThatHoldsThePipesHidesNoDeath(t *testing.T) {
	h := startHost(t, "grandchild")
	var grandchild int
	eventually(t, "the grandchild", func() bool {
		for _, e := range h.logs.FilterMessage("plugin output").All() {
			text, _ := e.ContextMap()["text"].(string)
			if n, ok := strings.CutPrefix(text, "grandchild "); ok {
				grandchild, _ = strconv.Atoi(n)
			}
		}
		return grandchild != 0
	})
	t.Cleanup(func() { _ = syscall.Kill(grandchild, syscall.SIGKILL) })
	_ = killProcess(h.Describe().PID)
	eventually(t, "the death", func() bool { return h.logged("key process ended") })
	h.mustSign(t, mustSelect(t, h.Host).Key)
}

func TestCloseEndsAProcessThatIsStopped(t *testing.T) {
	h := startHost(t, "")
	pid := h.Describe().PID
	stopProcess(t, pid)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	h.checkNothingLeft(t, pid)
}

func TestStartOfAProcessThatFreezesIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	dir := shortTempDir(t)
	_, err := Start(ctx, Command{Tier: "rowdy"}, Spec{Settings: json.RawMessage(`{"do":"freeze"}`)}, HostOptions{RunDir: dir})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("start: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestEnvironmentIsAllowListed(t *testing.T) {
	t.Setenv("TLSD_KEYSTORE_PASSWORD", "not-for-the-environment")
	t.Setenv("TZ", "UTC")
	h := startHost(t, "environment")
	eventually(t, "the environment", func() bool { return h.logged("TZ=UTC") })
	if h.logged("not-for-the-environment") {
		t.Error("the password is in the environment of the key process")
	}
	if !h.logged("TMPDIR=" + h.dir) {
		t.Error("the run directory is not TMPDIR")
	}
}

func TestRefusedConfigurationIsSaidAsTheTierSaysIt(t *testing.T) {
	dir := shortTempDir(t)
	spec := Spec{Settings: json.RawMessage(`{}`), Sources: []keymanager.Source{{Paths: []string{"/nowhere/c.pem", "/nowhere/k.pem"}}}}
	_, err := Start(t.Context(), Command{Tier: "rowdy"}, spec, HostOptions{RunDir: dir})
	want := `key manager "rowdy": open keystore "/nowhere/c.pem,/nowhere/k.pem": open /nowhere/c.pem: no such file or directory`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestCloseDuringCallsHangsNobody(t *testing.T) {
	h := startHost(t, "")
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for {
				if _, err := h.Select(t.Context(), serverHello("a.example")); err != nil {
					if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrUnavailable) {
						t.Errorf("select: %v", err)
					}
					return
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	calls.Wait()
}

// stopProcess stops a process and all its threads.
func stopProcess(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "the stop", func() bool {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		return strings.HasPrefix(string(out), "T")
	})
}

func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
