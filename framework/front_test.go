// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// frontEnv makes the test binary be a front: it holds the path of a frontSpec.
// Some tests need one that is a process of its own: a test that makes a key has
// it in memory.
const frontEnv = "FRAMEWORK_TEST_FRONT"

// frontSpec is what a front serves.
type frontSpec struct {
	Tier     string
	Path     string
	Password string // file
	MaxFiles uint64 // descriptors that it may have open; 0: as many as the test
}

// frontReady is what the front prints when it serves.
type frontReady struct {
	Addr   string
	KeyPID int
}

// runFront serves until it is asked to end.
func runFront(specPath string) error {
	b, err := os.ReadFile(specPath)
	if err != nil {
		return err
	}
	var spec frontSpec
	if err := json.Unmarshal(b, &spec); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := NewServer(ctx, Config{
		KeyManager: spec.Tier, Tiers: testTiers(),
		Keystores: []keymanager.Source{{Paths: []string{spec.Path}, Store: keymanager.PasswordRef{File: spec.Password}}},
		Listeners: []Listener{{Listen: "127.0.0.1:0"}},
	})
	if err != nil {
		return err
	}
	if spec.MaxFiles > 0 {
		limit := syscall.Rlimit{Cur: spec.MaxFiles, Max: spec.MaxFiles}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	ready := frontReady{s.Addrs()[0].String(), s.Keys().Manager().Describe().PID}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return s.Run(ctx)
}

// startFront starts a front and returns it, and what it says of itself.
func startFront(t *testing.T, spec frontSpec) (*os.Process, frontReady) {
	t.Helper()
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "front.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), frontEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("front: %v", err)
		}
	})
	var ready frontReady
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatalf("front: %v", err)
	}
	return cmd.Process, ready
}

// TestOutOfDescriptorsIsSurvived: a front with few descriptors and many
// connections serves again when they are gone.
func TestOutOfDescriptorsIsSurvived(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	src := storeOf(t, root.Issue(t, testca.Spec{DNS: []string{"a.test"}}))
	_, ready := startFront(t, frontSpec{Tier: "pkixcached", Path: src.Paths[0], Password: src.Store.File, MaxFiles: 64})
	var held []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", ready.Addr)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	late, err := net.Dial("tcp", ready.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := late.SetDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(late, clientOf(root, "a.test")).Handshake(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error = %v: descriptors were not short", err)
	}
	for _, c := range held {
		c.Close()
	}
	askFor(t, ready.Addr, "a.test")
}
