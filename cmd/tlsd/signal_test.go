// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A start that waits for its configuration can be given up.
func TestConfigurationThatNeverComes(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "tlsd.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := startServing(t, nil, "--config", fifo)
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when tlsd has opened it
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("tlsd went on waiting for its configuration after SIGTERM")
	}
}
