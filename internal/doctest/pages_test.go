// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package doctest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if anchor != "" && !anchors(read(t, path))[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, m[1], path)
			}
		}
	}
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	found := map[string]bool{}
	for l := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(l, "#"), " "); ok && strings.HasPrefix(l, "#") {
			title = drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			found[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return found
}

func TestQuotedCodeIsTheCode(t *testing.T) {
	for _, b := range blocks(t, "go") {
		if b.quoted != "" && !strings.Contains(read(t, b.quoted), b.text) {
			t.Errorf("%s:%d quotes %s, which doesn't say that", b.page, b.line, b.quoted)
		}
	}
}

// Whole programs are built as if they lay in a folder of this package.
func TestProgramsCompile(t *testing.T) {
	programs := 0
	for _, b := range blocks(t, "go") {
		if !strings.HasPrefix(b.text, "package main") {
			continue
		}
		programs++
		dir := t.TempDir()
		source := filepath.Join(dir, "main.go")
		if err := os.WriteFile(source, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		place, err := filepath.Abs(filepath.Join("program", "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{place: source}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "build", "-o", os.DevNull, "-overlay", filepath.Join(dir, "overlay.json"), "./program").CombinedOutput()
		if err != nil {
			t.Errorf("%s:%d doesn't compile: %v\n%s", b.page, b.line, err, out)
		}
	}
	if programs == 0 {
		t.Error("no whole program in the docs")
	}
}

func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	use := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	for _, page := range pages(t) {
		for _, m := range use.FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(makefile, fmt.Sprintf("\n%s:", m[1])) {
				t.Errorf("%s names make %s, which the Makefile doesn't have", page, m[1])
			}
		}
	}
}
