// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// dockerfile is what the last stage of the Dockerfile says, and how the first
// one builds.
type dockerfile struct {
	build                    string // the RUN line with go build
	copied                   [][]string
	entrypoint, cmd, healthy []string
	user                     string
	from                     []string
}

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var d dockerfile
	words := func(list string) (out []string) {
		if err := json.Unmarshal([]byte(list), &out); err != nil {
			t.Fatalf("%s: %v: there is no shell to take it apart", list, err)
		}
		return out
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "FROM":
			d.from = append(d.from, rest)
		case "RUN":
			if strings.Contains(rest, "go build") {
				d.build = rest
			}
		case "COPY":
			d.copied = append(d.copied, strings.Fields(rest))
		case "USER":
			d.user = rest
		case "ENTRYPOINT":
			d.entrypoint = words(rest)
		case "CMD":
			d.cmd = words(rest)
		case "HEALTHCHECK":
			_, command, _ := strings.Cut(rest, "CMD ")
			d.healthy = words(command)
		}
	}
	return d
}

// buildImage does what the Dockerfile says, without a container engine: it
// builds from what COPY takes of the repository, and returns a directory with
// what the last stage holds, for the user it names.
func buildImage(t *testing.T, d dockerfile) (root string) {
	t.Helper()
	context := t.TempDir()
	copyContext(t, context)
	out := t.TempDir()
	build := exec.Command("/bin/sh", "-ec", strings.ReplaceAll(d.build, "/out/", out+"/"))
	build.Dir = context
	build.Env = append(os.Environ(), "TARGETOS=", "TARGETARCH=", "VERSION=v0-test", "GOFLAGS=-mod=readonly")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", d.build, err, text)
	}
	root, err := os.MkdirTemp("", "tlsd-image-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	os.Chmod(root, 0o755) // it is another user's
	for _, c := range d.copied {
		if c[0] != "--from=build" {
			continue
		}
		from, to := strings.Replace(c[1], "/out/", out+"/", 1), filepath.Join(root, c[2])
		if strings.HasSuffix(c[2], "/") {
			to = filepath.Join(to, path.Base(c[1]))
		}
		copyFile(t, from, to)
	}
	return root
}

// copyContext copies what .dockerignore leaves of the repository.
func copyContext(t *testing.T, to string) {
	t.Helper()
	ignored := readDockerignore(t)
	repository := filepath.Join("..", "..")
	err := filepath.WalkDir(repository, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(repository, name)
		switch {
		case rel != "." && ignored(rel) && e.IsDir():
			return fs.SkipDir
		case rel == "." || e.IsDir() || ignored(rel):
			return nil
		}
		copyFile(t, name, filepath.Join(to, rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// readDockerignore knows the forms that the file uses: *, !NAME and **/PATTERN.
func readDockerignore(t *testing.T) (ignored func(rel string) bool) {
	t.Helper()
	text, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var kept, patterns []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line == "*" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "!"):
			kept = append(kept, line[1:])
		case strings.HasPrefix(line, "**/"):
			patterns = append(patterns, line[3:])
		default:
			t.Fatalf(".dockerignore: this test doesn't know the form of %q", line)
		}
	}
	return func(rel string) bool {
		first, _, _ := strings.Cut(rel, "/")
		return !slices.Contains(kept, first) || slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := path.Match(p, path.Base(rel))
			return ok
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	testca.WriteProgram(t, to, content, info.Mode().Perm()|0o444)
}
