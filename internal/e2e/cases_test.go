// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// fieldCase is a row of testdata/cases.tsv: a situation that people have reported,
// and what shows that tlsd does right in it.
type fieldCase struct {
	tests  []string // as go test -run takes them
	reason string   // why there is none
}

// TestEveryCaseHasItsTest: the table names tests that there are, and has a row for
// each case where the list of them is at hand.
func TestEveryCaseHasItsTest(t *testing.T) {
	t.Parallel()
	table, known := caseTable(t), testFunctions(t)
	for id, c := range table {
		if (len(c.tests) == 0) == (c.reason == "") {
			t.Errorf("%s: it takes tests, or a reason why there are none", id)
		}
		for _, name := range c.tests {
			function, script, isScript := strings.Cut(name, "/")
			if !known[function] {
				t.Errorf("%s: there is no %s", id, function)
			}
			if path := filepath.Join(repository, "cmd/tlsd/testdata/script", script+".txt"); isScript && !exists(path) {
				t.Errorf("%s: there is no %s", id, path)
			}
		}
	}
	t.Run("complete", func(t *testing.T) {
		list, err := os.ReadFile(filepath.Join(repository, "../shared/cases.md"))
		if err != nil {
			t.Skipf("NOT CHECKED: the list of cases is not here: %v", err)
		}
		var want []string
		for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]\d\d) \|`).FindAllSubmatch(list, -1) {
			want = append(want, string(m[1]))
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(table)); !slices.Equal(got, want) {
			t.Errorf("rows %s\nwant %s", got, want)
		}
	})
}

// caseTable reads the table.
func caseTable(t *testing.T) map[string]fieldCase {
	t.Helper()
	content, err := os.ReadFile("testdata/cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]fieldCase{}
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := append(strings.Split(strings.TrimRight(line, "\n"), "\t"), "", "")
		if _, twice := table[fields[0]]; twice {
			t.Errorf("%s stands twice", fields[0])
		}
		table[fields[0]] = fieldCase{tests: strings.Fields(fields[1]), reason: fields[2]}
	}
	return table
}

// testFunctions returns the names of all tests in the repository.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	found, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir(repository, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
