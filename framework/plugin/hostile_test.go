// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
)

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
	core, logs := observer.New(zap.WarnLevel)
	opt := HostOptions{RunDir: dir, Log: zap.New(core), patience: usualPatience()}
	opt.patience.opening = 100 * time.Millisecond
	_, err := Start(ctx, Command{Tier: "rowdy"}, Spec{Settings: json.RawMessage(`{"do":"freeze"}`)}, opt)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not open its keystores in time") {
		t.Errorf("start: %v", err)
	}
	if n := logs.FilterMessage("key process is still opening its keystores").Len(); n != 1 {
		t.Errorf("%d lines say meanwhile what it is at, want 1", n)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestEnvironmentIsAllowListed(t *testing.T) {
	t.Setenv("TLSD_KEYSTORE_PASSWORD", "not-for-the-environment")
	t.Setenv("TZ", "UTC")
	h := startHost(t, "environment")
	eventually(t, "the environment, with the run directory as TMPDIR", func() bool {
		return h.logged("TZ=UTC") && h.logged("TMPDIR="+h.dir)
	})
	if h.logged("not-for-the-environment") {
		t.Error("the password is in the environment of the key process")
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

func TestCrashAtTheFirstStartIsSaid(t *testing.T) {
	dir := shortTempDir(t)
	_, err := Start(t.Context(), Command{Tier: "rowdy"}, Spec{Settings: json.RawMessage(`{"do":"crash"}`)}, HostOptions{RunDir: dir})
	if err == nil || !strings.Contains(err.Error(), "it ended with exit status 3") {
		t.Errorf("start: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestCallsThatHangBoundTheirKindOnly(t *testing.T) {
	h := startHost(t, "hang", func(s *hostSetup) { s.opt.PluginWait = 300 * time.Millisecond })
	entries, err := h.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	slots := h.slot.Load().link.selects.slots
	for range cap(slots) {
		calls.Go(func() {
			if _, err := h.Select(ctx, serverHello("a.example")); !errors.Is(err, context.Canceled) {
				t.Errorf("hanging select: %v", err)
			}
		})
	}
	eventually(t, "a full gate", func() bool { return len(slots) == cap(slots) })
	cancel()
	calls.Wait()
	// The calls are given up, but the key process works on them still.
	if _, err := h.Select(t.Context(), serverHello("a.example")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("one more select: %v", err)
	}
	h.mustSign(t, entries[0].Key)
}

// TestTierIsToldHowMuchTimeThereIs: a tier that waits for somebody else gives up
// with the handshake, and its call no longer counts.
func TestTierIsToldHowMuchTimeThereIs(t *testing.T) {
	h := startHost(t, "wait")
	slots := h.slot.Load().link.selects.slots
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Select(ctx, serverHello("a.example")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("select: %v", err)
	}
	eventually(t, "the end of the call", func() bool { return len(slots) == 0 })
}
