// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the module's folder, from this package's.
const root = "../.."

// block is a fenced block of a page.
type block struct {
	page   string // path below the module
	line   int    // of the opening fence, from 1
	lang   string
	quoted string // file that it quotes; empty: none
	text   string
}

var quotation = regexp.MustCompile(`^<!-- (\S+) -->$`)

// pages returns the paths of README.md and of all pages in docs/.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	for _, d := range docs {
		found = append(found, filepath.Join("docs", filepath.Base(d)))
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// blocks returns the fenced blocks of all pages in one language.
func blocks(t *testing.T, lang string) []block {
	t.Helper()
	var found []block
	for _, page := range pages(t) {
		for _, b := range fenced(page, read(t, page)) {
			if b.lang == lang {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no %s block in any page: is the reader of Markdown right?", lang)
	}
	return found
}

func fenced(page, text string) (found []block) {
	var open *block
	before := ""
	line := 0
	for l := range strings.Lines(text) {
		line++
		bare := strings.TrimRight(l, "\n")
		switch {
		case open != nil && bare == "```":
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += l
		case strings.HasPrefix(bare, "```"):
			open = &block{page: page, line: line, lang: strings.TrimPrefix(bare, "```")}
			if m := quotation.FindStringSubmatch(before); m != nil {
				open.quoted = m[1]
			}
		}
		before = bare
	}
	return found
}
