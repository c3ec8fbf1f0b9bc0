// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
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
		var set struct{ Do, File string }
		if err := json.Unmarshal(env.Settings, &set); err != nil {
			return nil, err
		}
		env.Settings = nil
		km, err := openTest(ctx, env)
		if err == nil {
			err = misbehave(set.Do, set.File)
		}
		switch set.Do {
		case "hang":
			return hangingManager{km.(*testManager)}, err
		case "hang-sign":
			return hangingSigner{km.(*testManager)}, err
		case "wait":
			return waitingManager{km.(*testManager)}, err
		case "explain":
			return explainingManager{km.(*testManager)}, err
		}
		return km, err
	}}
}

// hangingManager never answers Select, whatever becomes of its context.
type hangingManager struct{ *testManager }

func (hangingManager) Select(context.Context, *keymanager.Hello) (*keymanager.Credential, error) {
	select {}
}

// hangingSigner's keys never sign.
type hangingSigner struct{ *testManager }

func (h hangingSigner) Select(ctx context.Context, hello *keymanager.Hello) (*keymanager.Credential, error) {
	c, err := h.testManager.Select(ctx, hello)
	if err == nil {
		c.Key = hangingKey{c.Key}
	}
	return c, err
}

func (h hangingSigner) List(ctx context.Context) ([]keymanager.Entry, error) {
	entries, err := h.testManager.List(ctx)
	for i := range entries {
		entries[i].Key = hangingKey{entries[i].Key}
	}
	return entries, err
}

type hangingKey struct{ keymanager.Key }

func (hangingKey) Sign(context.Context, *keymanager.SignRequest) ([]byte, error) { select {} }

// waitingManager answers Select when its time is over.
type waitingManager struct{ *testManager }

func (waitingManager) Select(ctx context.Context, _ *keymanager.Hello) (*keymanager.Credential, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func misbehave(how, file string) error {
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
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 30") // a replacement starts one too, which nobody ends
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "grandchild", cmd.Process.Pid)
	case "descriptors":
		out, err := exec.Command("/bin/sh", "-c", "ls -l /proc/$$/fd; echo descriptors: all").Output()
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, string(out))
	case "environment":
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), " "))
	case "crash":
		os.Exit(3)
	case "freeze":
		freeze()
	case "leave-group":
		group, err := syscall.Getpgid(os.Getppid())
		err = errors.Join(err, syscall.Setpgid(0, group), os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600))
		if err != nil {
			return err
		}
		freeze()
	case "freeze-if":
		if os.Remove(file) == nil {
			freeze()
		}
	case "busy":
		for range 2 * runtime.NumCPU() {
			go func() {
				for {
					runtime.KeepAlive(sha256.Sum256([]byte(how)))
				}
			}()
		}
	}
	return nil
}

// freeze stops this process for good: a stop can get lost while threads come
// and go.
func freeze() {
	for {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
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
	if strings.HasPrefix(t.Name(), "TestFaultsByGRPC/") {
		s.cmd.Args = []string{byGRPCOnly}
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
	base := "/tmp"
	if front := os.Getenv(frontMarker); front != "" {
		base = front
	}
	dir, err := os.MkdirTemp(base, "t")
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
