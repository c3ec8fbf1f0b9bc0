// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

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

func TestCallersNoticeNoDeath(t *testing.T) {
	h := startHost(t, "", func(s *hostSetup) { s.opt.PluginWait = time.Minute })
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				cred, err := h.Select(t.Context(), serverHello("a.example"))
				if err == nil {
					_, err = cred.Key.Sign(t.Context(), handshakeRequest())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		pid := h.Describe().PID
		_ = killProcess(pid)
		eventually(t, "the replacement", func() bool { now := h.Describe().PID; return now != 0 && now != pid })
	}
	close(stop)
	callers.Wait()
}

func TestKeyThatIsOnlyEverSelectedSignsAfterARestart(t *testing.T) {
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Tier, s.spec.Settings = "test", json.RawMessage(`{"hide":true}`) })
	cred := mustSelect(t, h.Host)
	_ = killProcess(h.Describe().PID)
	h.mustSign(t, cred.Key) // by one more Select with the same hello
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

// What was kept is believed only while the key process's changes are heard of.
func TestStatusSaysWhetherChangesAreHeardOf(t *testing.T) {
	t.Parallel()
	h := startHost(t, "")
	if h.Status().Watched {
		t.Error("watched before Watch is called")
	}
	told := make(chan bool, 10) // what Status said during each call
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Watch(ctx, func(keymanager.Change) { told <- h.Status().Watched }) }()
	for round, cause := range []string{"the first Change", "that of the replacement"} {
		if <-told {
			t.Errorf("watched before %s was passed on", cause)
		}
		eventually(t, "watched after "+cause, func() bool { return h.Status().Watched })
		if round == 0 {
			_ = killProcess(h.Describe().PID) // in the gap, and until it is told of, nothing is watched
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	eventually(t, "not watched after Watch", func() bool { return !h.Status().Watched })
}

// What an opened tier can do is known when Configure answers, not before.
func TestHostKnowsWhatTheOpenedTierCanDo(t *testing.T) {
	t.Parallel()
	h := startHost(t, "")
	about := h.up().about
	if !about.GetLists() || !about.GetReloads() || !about.GetWatches() || !about.GetTrusts() || about.GetExplains() {
		t.Errorf("description %v, want all but explains", about)
	}
	if about := startHost(t, "explain").up().about; !about.GetExplains() {
		t.Errorf("description %v, want explains", about)
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
