// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
)

// rawChild is a key process as a front of another make would start it: without
// AutoMTLS and with nothing between it and the test.
type rawChild struct {
	cmd      *exec.Cmd
	api      pb.KeyManagerClient
	socket   string
	lifeLine *os.File
	stderr   *lockedBuffer
	rest     chan []byte // of standard output, behind the handshake
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// childCommand is this test binary as a key process whose sockets go to dir.
func childCommand(dir string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	if _, err := os.Stat(cmd.Path); err != nil {
		cmd = exec.Command(os.Args[0])
	}
	cmd.Env = []string{
		childMarker + "=test", cookieName + "=" + cookieValue,
		"PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR=" + dir, "TMPDIR=" + dir, "KEPT=1",
	}
	return cmd
}

// startRaw starts cmd and connects to it. The cleanup kills what is left.
func startRaw(t *testing.T, cmd *exec.Cmd) *rawChild {
	t.Helper()
	far, near, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &rawChild{cmd: cmd, lifeLine: near, stderr: &lockedBuffer{}, rest: make(chan []byte, 1)}
	cmd.ExtraFiles = append([]*os.File{far}, cmd.ExtraFiles...)
	cmd.Stderr = c.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	far.Close()
	t.Cleanup(func() {
		near.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	r := bufio.NewReader(stdout)
	line, err := r.ReadString('\n')
	parts := strings.Split(strings.TrimSpace(line), "|")
	if err != nil || len(parts) < 5 {
		t.Fatalf("handshake is %q (%v); standard error: %s", line, err, c.stderr)
	}
	go func() {
		rest, _ := io.ReadAll(r)
		c.rest <- rest
	}()
	c.socket = parts[3]
	conn, err := grpc.NewClient("unix:"+c.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c.api = pb.NewKeyManagerClient(conn)
	return c
}

func (c *rawChild) configure(t *testing.T, set testSettings, sources ...keymanager.Source) {
	t.Helper()
	settings, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.Configure(t.Context(), configureToProto(Spec{Sources: sources, Settings: settings}, 1)); err != nil {
		t.Fatal(err)
	}
}

// wantExit ends the life line and waits for the process to follow.
func (c *rawChild) wantExit(t *testing.T) {
	t.Helper()
	c.lifeLine.Close()
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the key process ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the key process outlives its front")
	}
	if _, err := os.Lstat(c.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestChildKeepsStandardOutputForTheHandshake(t *testing.T) {
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	c := startRaw(t, childCommand(t.TempDir()))
	c.configure(t, testSettings{Say: "noise", Env: true}, src)
	signed, err := c.api.Sign(t.Context(), signToProto(keymanager.KeyIDOf(leaf.Cert), handshakeRequest()))
	if err != nil {
		t.Fatal(err)
	}
	verifyHandshake(t, leaf, signed.GetSignature())
	c.wantExit(t)
	if rest := <-c.rest; len(rest) > 0 {
		t.Errorf("standard output goes on with %q", rest)
	}
	said := c.stderr.String()
	for _, way := range []string{"by os.Stdout", "by os.Stderr", "by descriptor 1"} {
		if !strings.Contains(said, "noise "+way) {
			t.Errorf("what was written %s is not on standard error", way)
		}
	}
	for _, name := range []string{childMarker, cookieName, "PLUGIN_"} {
		if strings.Contains(said, "environment has "+name) {
			t.Errorf("%s is still in the environment", name)
		}
	}
	if !strings.Contains(said, "environment has KEPT") {
		t.Error("the rest of the environment is gone")
	}
}

// The socket is its user's alone even where the front's umask allows more.
func TestChildSocketIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	c := startRaw(t, childCommand(t.TempDir()))
	syscall.Umask(old)
	info, err := os.Lstat(c.socket)
	if err != nil {
		t.Fatal(err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		t.Errorf("mode is %v", perm)
	}
	c.wantExit(t)
}

func TestChildLeavesSignalsToItsFront(t *testing.T) {
	c := startRaw(t, childCommand(t.TempDir()))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		if err := c.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if _, err := c.api.Health(t.Context(), &pb.HealthRequest{}); err != nil {
			t.Fatalf("after %v: %v", sig, err)
		}
	}
	c.wantExit(t)
}

func TestChildRefusesToStart(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		want string
	}{
		{"unknown-tier", []string{childMarker + "=softhsm", cookieName + "=" + cookieValue}, `no key manager "softhsm" in this executable: it has test`},
		{"no-front", []string{childMarker + "=test"}, childMarker + " is set, but no front has started this process: unset it"},
		{"no-life-line", []string{childMarker + "=test", cookieName + "=" + cookieValue}, `"no life line"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = tt.env
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != exitUsage {
				t.Errorf("status is %d, want %d", code, exitUsage)
			}
			if !strings.Contains(stderr.String(), tt.want) || stdout.Len() > 0 {
				t.Errorf("standard error is %q and output %q, want %q", &stderr, &stdout, tt.want)
			}
		})
	}
}

func TestServeByHandSaysWhatItIs(t *testing.T) {
	tests := []struct {
		args   []string
		status int
		out    string // which stream has it
		want   string
	}{
		{nil, 2, "stderr", `is the key manager "test" for tlsd`},
		{[]string{"--keystore", "a.p12"}, 2, "stderr", "--keymanager my-test --keystore PATH"},
		{[]string{"-h"}, 0, "stdout", "tlsd --plugin my-test=/"},
		{[]string{"--help"}, 0, "stdout", "--keymanager my-test"},
		{[]string{"--version"}, 0, "stdout", "(contract 1)"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.args), func(t *testing.T) {
			streams := map[string]*bytes.Buffer{"stdout": {}, "stderr": {}}
			if got := byHand(testTier(), tt.args, streams["stdout"], streams["stderr"]); got != tt.status {
				t.Errorf("status is %d, want %d", got, tt.status)
			}
			for name, b := range streams {
				if name == tt.out && !strings.Contains(b.String(), tt.want) || name != tt.out && b.Len() > 0 {
					t.Errorf("%s is %q", name, b)
				}
			}
		})
	}
}

func TestIsChild(t *testing.T) {
	if IsChild() {
		t.Error("the test process takes itself for a key process")
	}
	t.Setenv(childMarker, "test")
	if !IsChild() {
		t.Error("a marked process doesn't take itself for a key process")
	}
}

// tempDirFor makes a directory that uid may use, wherever its parents are.
func tempDirFor(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "key")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	return filepath.Clean(dir)
}
