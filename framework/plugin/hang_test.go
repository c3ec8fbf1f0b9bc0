// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// short is a patience for tests of what hangs. It is too short for a machine
// with other things to do.
func short(s *hostSetup) {
	s.opt.patience = patience{every: 100 * time.Millisecond, within: 500 * time.Millisecond, misses: 3, opening: time.Minute}
}

func TestProcessThatIsStoppedIsReplaced(t *testing.T) {
	t.Parallel()
	h := startHost(t, "", short)
	cred := mustSelect(t, h.Host)
	pid := h.Describe().PID
	stopProcess(t, pid)
	h.mustSign(t, cred.Key) // begun with the one that is stopped
	if !h.logged("key process ended") || !h.logged("it hangs and was given up: no answer to Health in 500ms") {
		t.Error("the log doesn't say why the process was replaced")
	}
	if s := h.Status(); !s.Up || s.PID == pid || s.Restarts != 1 || s.Err != nil {
		t.Errorf("status is %+v", s)
	}
	eventually(t, "the end of the process", func() bool { return syscall.Kill(pid, 0) != nil })
}

// A tier that is deadlocked keeps its process answering Health.
func TestProcessWhoseCallsNeverEndIsReplaced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		do, kind string
		call     func(context.Context, *Host) error
	}{
		{"hang", "Select", func(ctx context.Context, h *Host) error {
			_, err := h.Select(ctx, serverHello("a.example"))
			return err
		}},
		{"hang-sign", "Sign", func(ctx context.Context, h *Host) error {
			cred, err := h.Select(ctx, serverHello("a.example"))
			if err == nil {
				_, err = cred.Key.Sign(ctx, handshakeRequest())
			}
			return err
		}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			h := startHost(t, tc.do, short, func(s *hostSetup) { s.opt.patience.within = 10 * time.Second }) // answers Health
			pid := h.Describe().PID
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := tc.call(ctx, h.Host); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the call: %v", err)
			}
			eventually(t, "another process", func() bool { s := h.Status(); return s.Up && s.PID != pid })
			if !h.logged("1 calls of " + tc.kind + " go on though their time is over") {
				t.Errorf("the log doesn't say why the process was replaced: %v", h.logs.All())
			}
		})
	}
}

// A call that is late is no reason while others of its kind end.
func TestOneLateCallIsNoHang(t *testing.T) {
	t.Parallel()
	g := newGate()
	g.late.Store(1)
	if err := g.stuck("Sign"); err == nil {
		t.Error("nothing ends and nothing is said")
	}
	if err := g.enter(waitAsLongAs(t.Context()), nil); err != nil {
		t.Fatal(err)
	}
	g.leave()
	if err := g.stuck("Sign"); err != nil {
		t.Errorf("a call has ended: %v", err)
	}
	if err := g.stuck("Sign"); err == nil {
		t.Error("nothing ends any more and nothing is said")
	}
	g.late.Store(0)
	if err := g.stuck("Sign"); err != nil {
		t.Errorf("nothing is late: %v", err)
	}
}

// The usual patience is what is tried here: on a machine that has much more to
// do than it can, nothing is replaced.
func TestBusyProcessIsLeftAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the machine for some seconds")
	}
	h := startHost(t, "busy")
	pid := h.Describe().PID
	for range 2 * runtime.NumCPU() {
		go func() {
			for t.Context().Err() == nil {
			}
		}()
	}
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		h.mustSign(t, mustSelect(t, h.Host).Key)
	}
	if s := h.Status(); s.PID != pid || s.Restarts != 0 {
		t.Errorf("status is %+v, began with process %d", s, pid)
	}
}

// A replacement that is stopped while it opens its keystores is noticed too.
func TestReplacementThatHangsAtItsStartIsReplaced(t *testing.T) {
	t.Parallel()
	once := filepath.Join(shortTempDir(t), "freeze-once")
	h := startHost(t, "", short, func(s *hostSetup) {
		s.spec.Settings, _ = json.Marshal(map[string]string{"do": "freeze-if", "file": once})
	})
	if err := os.WriteFile(once, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = killProcess(h.Describe().PID)
	eventually(t, "the failed start", func() bool { return h.logged("key process not started") })
	if !h.logged("it hangs and was given up") {
		t.Error("the log doesn't say why")
	}
	eventually(t, "a process that answers", func() bool { return h.Status().Up })
	h.mustSign(t, mustSelect(t, h.Host).Key)
}

func TestCallsFailAtOnceWhileAStartIsSomeTimeAway(t *testing.T) {
	t.Parallel()
	src := filepath.Join(shortTempDir(t), "gone.pem")
	h := startHost(t, "", func(s *hostSetup) {
		s.opt.PluginWait = time.Minute
		copyFile(t, s.spec.Sources[0].Paths[1], src)
		s.spec.Sources[0].Paths[1] = src
	})
	cred := mustSelect(t, h.Host)
	away := src + ".away"
	if err := os.Rename(src, away); err != nil { // so that no replacement can open it
		t.Fatal(err)
	}
	_ = killProcess(h.Describe().PID)
	began := time.Now()
	_, err := cred.Key.Sign(t.Context(), handshakeRequest()) // waits for the first start, which fails
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "next attempt") || !strings.Contains(err.Error(), "gone.pem") {
		t.Errorf("sign without a key process: %v", err)
	}
	if waited := time.Since(began); waited > 30*time.Second {
		t.Errorf("it took %v", waited)
	}
	if s := h.Status(); s.Up || s.Err == nil || s.PID != 0 || s.Watched {
		t.Errorf("status is %+v", s)
	}
	if err := os.Rename(away, src); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replacement", func() bool { return h.Status().Up })
	h.mustSign(t, cred.Key)
}
