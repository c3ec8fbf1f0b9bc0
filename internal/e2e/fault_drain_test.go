// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// TestFaultO03_OrderlyEnd: not ready at once, connections are accepted until the
// delay is over and served by a key process that the terminal's signal reached
// too, open ones may finish, and nothing is left.
func TestFaultO03_OrderlyEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		group bool
		sig   syscall.Signal
	}{
		"SIGTERM":              {false, syscall.SIGTERM},
		"SIGINT-of-a-terminal": {true, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metrics := freeAddr(t)
			d, s := proxying(t, byLine(t), "drain: {delay: 6s, timeout: 20s}", fmt.Sprintf("metrics: {listen: %q}", metrics))
			open, err := tls.Dial("tcp", d.addr, clientOf(s))
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			mustEchoOver(t, open)
			ready(t, metrics, http.StatusOK)
			keys := childrenOf(d.cmd.Process.Pid)
			pid := d.cmd.Process.Pid
			if tt.group {
				pid = -pid
			}
			began := time.Now()
			syscall.Kill(pid, tt.sig)
			ready(t, metrics, http.StatusServiceUnavailable)
			mustEcho(t, d, s) // by a full handshake
			d.untilRefused(t, s)
			if took := time.Since(began); took < 6*time.Second {
				t.Errorf("refused after %v", took)
			}
			mustEchoOver(t, open)
			open.Close()
			d.mustHaveEnded(t, keys)
		})
	}
}

// ready waits until /readyz says so.
func ready(t *testing.T, addr string, want int) {
	t.Helper()
	got := 0
	for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get("http://" + addr + "/readyz"); err == nil {
			got = resp.StatusCode
			resp.Body.Close()
		}
	}
	if got != want {
		t.Errorf("/readyz: %d, want %d", got, want)
	}
}

func (d *daemon) untilRefused(t *testing.T, s store) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		c, err := tls.Dial("tcp", d.addr, clientOf(s))
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			c.Close()
		}
	}
	t.Error("connections are still accepted")
}

// mustHaveEnded waits for a tlsd that was told to end to do so, well, and with its
// key processes.
func (d *daemon) mustHaveEnded(t *testing.T, keys []int) {
	t.Helper()
	select {
	case err := <-d.exited:
		d.ended = true
		if err != nil {
			t.Errorf("tlsd ended with %v\n%s", err, d.log)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("tlsd does not end\n%s", d.log)
	}
	for _, pid := range keys {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d outlives tlsd", pid)
		}
	}
}

// TestFaultO03_SecondSignalEndsAtOnce, during the delay and during the drain.
func TestFaultO03_SecondSignalEndsAtOnce(t *testing.T) {
	for name, drain := range map[string]string{
		"delay": "drain: {delay: 1h, timeout: 1h}",
		"drain": "drain: {timeout: 1h}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, s := proxying(t, byLine(t), drain)
			open, err := tls.Dial("tcp", d.addr, clientOf(s))
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			mustEchoOver(t, open)
			keys := childrenOf(d.cmd.Process.Pid)
			syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
			d.awaitLog(map[string]string{"delay": "not ready any more", "drain": `"ending"`}[name])
			syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
			d.mustHaveEnded(t, keys)
			_ = open.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.ReadFull(open, make([]byte, 1)); err == nil {
				t.Error("the connection outlives tlsd")
			}
		})
	}
}
