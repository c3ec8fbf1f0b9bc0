// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// A terminator outlives whoever reads its log: it serves, reloads and ends with
// nobody at the other end, and with somebody there who doesn't read.
func TestNobodyReadsTheOutput(t *testing.T) {
	tests := []struct {
		name string
		end  func(t *testing.T, r, w *os.File)
	}{
		{"reader_gone", func(t *testing.T, r, w *os.File) { r.Close() }},
		{"pipe_full", fill},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			tt.end(t, r, w)
			addr := testca.FreeAddr(t)
			cmd := startServing(t, w, "--listen", addr, "--debug", "keymanager")
			w.Close()
			for range 3 {
				conn := dialUntilServed(t, addr)
				conn.Close()
			}
			if err := errors.Join(cmd.Process.Signal(syscall.SIGHUP), cmd.Process.Signal(syscall.SIGTERM)); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// fill writes to a pipe what it holds.
func fill(t *testing.T, _, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// startServing runs this executable as tlsd, with out as both its outputs.
func startServing(t *testing.T, out *os.File, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = "tlsd"
	cmd.Env = []string{"TMPDIR=" + t.TempDir()}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// dialUntilServed makes a handshake, as soon as somebody listens.
func dialUntilServed(t *testing.T, addr string) *tls.Conn {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		raw, err := net.Dial("tcp", addr)
		if err != nil && time.Now().Before(end) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) // whose it is doesn't matter here
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return conn
	}
}
