// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/plugin"
)

func TestExitStatus(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"well", nil, exitOK},
		{"given_wrong", errors.New("keystore"), exitUsage},
		{"address", &framework.ListenError{Listen: ":1", Err: syscall.EADDRINUSE}, exitMachine},
		{"run_directory", fmt.Errorf("key manager: %w", plugin.ErrRunDir), exitMachine},
		{"own", &status{exitSignal, errors.New("interrupted")}, exitSignal},
		{"descriptors", fmt.Errorf("execute: %w", os.NewSyscallError("pipe2", syscall.EMFILE)), exitMachine},
		{"processes", fmt.Errorf("execute: %w", syscall.EAGAIN), exitMachine},
		{"missing_file", fmt.Errorf("plugin: %w", syscall.ENOENT), exitUsage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitStatus(tt.err); got != tt.want {
				t.Errorf("status %d, want %d", got, tt.want)
			}
		})
	}
}

// Whoever had a hand in a message, the terminal that shows it is not theirs.
func TestReportIsPrintable(t *testing.T) {
	var out bytes.Buffer
	report(&out, errors.Join(errors.New("alias \x1b]0;owned\a"), errors.New("name \u202e.p12\r")))
	want := "tlsd: alias \\x1b]0;owned\\a\n" + "tlsd: name \\u202e.p12\\r\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
