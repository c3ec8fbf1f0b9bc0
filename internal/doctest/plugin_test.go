// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package doctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever follows the page on plugins from an empty folder has one at the end.
func TestPluginFromAnEmptyModule(t *testing.T) {
	const page = "docs/writing-a-plugin.md"
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, b := range blocks(t, "go") {
		if b.page == page && strings.HasPrefix(b.text, "package main") {
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range blocks(t, "sh") {
		if b.page != page {
			continue
		}
		for line := range strings.Lines(b.text) {
			words := strings.Fields(strings.ReplaceAll(line, "/path/to/clone", clone))
			if words[0] != "go" {
				continue
			}
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %s%v\n%s", page, line, err, out)
			}
		}
	}
	out, err := exec.Command(filepath.Join(dir, "bin", "pemfile"), "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "pemfile ") {
		t.Errorf("the plugin says %q, %v", out, err)
	}
}
