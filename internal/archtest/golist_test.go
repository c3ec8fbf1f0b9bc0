// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tlsd/tlsd"

// root is the module's folder, from this package's.
const root = "../.."

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

// openssl is the folder of the module that has cgo.
const openssl = "plugins/openssl"

// rel is the package's path below the module.
func (p pkg) rel() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// goList runs go list -json in the module's folder.
func goList(t *testing.T, args ...string) []pkg {
	t.Helper()
	return goListIn(t, root, args...)
}

// allPackages returns those of the module, and of the one that has cgo.
func allPackages(t *testing.T) []pkg {
	t.Helper()
	return append(goList(t, "./..."), goListIn(t, filepath.Join(root, openssl), "./...")...)
}

func goListIn(t *testing.T, dir string, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Doc,Standard,GoFiles,Imports"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // files that need it are listed too; nothing is compiled
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// deps returns what is linked into a package: import paths, its own included.
func deps(t *testing.T, target string, tags ...string) map[string]bool {
	t.Helper()
	linked := map[string]bool{}
	for _, p := range goList(t, "-deps", "-tags", strings.Join(tags, ","), target) {
		linked[p.ImportPath] = true
	}
	return linked
}

// below reports whether an import path is in one of the folders: the folder
// itself or anything beneath it.
func below(path string, folders ...string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}

// match reports whether one of path.Match's patterns fits.
func match(path string, patterns ...string) bool {
	for _, p := range patterns {
		if ok, _ := filepath.Match(p, path); ok {
			return true
		}
	}
	return false
}
