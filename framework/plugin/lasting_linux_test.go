// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEndpointReadsPipesMoreThanOnce: a password that a shell's <(…) gives opens the
// store, each of its keys, and the store again after a change.
func TestEndpointReadsPipesMoreThanOnce(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("what a pipe gives"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	path, err := lasting(t.Context(), fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if b, err := os.ReadFile(path); err != nil || string(b) != "what a pipe gives" {
			t.Errorf("read %q, %v", b, err)
		}
	}
	if _, err := lasting(t.Context(), "/dev/fd/250"); err == nil || !strings.Contains(err.Error(), "descriptor 250 is not open") {
		t.Errorf("a descriptor that is closed: %v", err)
	}
}

// TestLinkToASocketIsNoWayRound: what counts is where the socket is.
func TestLinkToASocketIsNoWayRound(t *testing.T) {
	dir := shortTempDir(t)
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(open, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(open, "s"), link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dialOwner(t.Context(), link); err == nil || !strings.Contains(err.Error(), "everybody may write") {
		t.Errorf("got %v", err)
	}
}
