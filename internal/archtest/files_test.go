// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// eachFile calls f with every file of the project, by its path below the
// module, and its content.
func eachFile(t *testing.T, f func(path string, content []byte)) {
	t.Helper()
	made := map[string]bool{".git": true, ".tools": true, "bin": true, "dist": true}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if err != nil || made[rel] {
			return orSkipDir(err)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f(rel, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func orSkipDir(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// eachGoFile calls f with the syntax of every Go file.
func eachGoFile(t *testing.T, f func(path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	eachFile(t, func(path string, content []byte) {
		if filepath.Ext(path) != ".go" {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, content, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		f(path, fset, file)
	})
}

func TestPackagesHaveDoc(t *testing.T) {
	names := regexp.MustCompile(`(^|/)(util|utils|common|shared|helpers|impl|misc)$`)
	for _, p := range allPackages(t) {
		if p.Doc == "" {
			t.Errorf("package %q has no doc comment", p.rel())
		}
		if names.MatchString(p.rel()) {
			t.Errorf("package %q has a name that says nothing", p.rel())
		}
	}
}

const spdx = "// SPDX-FileCopyrightText: The tlsd authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

func TestFilesHaveSPDXHeader(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		switch filepath.Ext(path) {
		case ".go", ".proto", ".c", ".h":
			if !strings.HasPrefix(string(content), spdx) {
				t.Errorf("%s doesn't begin with the two SPDX lines and an empty one", path)
			}
		}
	})
}

// A path of the machine that something was written on means nothing elsewhere.
func TestNoMachinePaths(t *testing.T) {
	machine := regexp.MustCompile(`(^|[\s"'=(:` + "`" + `])/(home|root|work|workspace|Users)/\S*`)
	eachFile(t, func(path string, content []byte) {
		if m := machine.Find(content); m != nil {
			t.Errorf("%s names a path of one machine: %q", path, m)
		}
	})
}

// What links C is a module of its own, so that tlsd builds without any.
func TestCgoStandsInItsOwnModuleOnly(t *testing.T) {
	eachGoFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		for _, imp := range file.Imports {
			if imp.Path.Value == `"C"` && !below(path, openssl) {
				t.Errorf("%s imports C", path)
			}
		}
	})
}

// The build tags that leave a tier out stand only where cmd/tlsd lists it.
func TestTierTagsStandInBuiltinFilesOnly(t *testing.T) {
	eachGoFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if !constraint.IsGoBuild(c.Text) || !strings.Contains(c.Text, "no_") {
					continue
				}
				if !match(path, "cmd/tlsd/builtin_*.go") {
					t.Errorf("%s has %q", path, c.Text)
				}
			}
		}
	})
}

func TestInitStandsInBuiltinFilesOnly(t *testing.T) {
	eachGoFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.Name == "init" && !match(path, "cmd/tlsd/builtin_*.go", "framework/plugin/proto/*.pb.go") {
				t.Errorf("%s has an init function", path)
			}
		}
	})
}

// Sizes in lines. Over want is worth a second thought and is listed by go test
// -v; over most fails.
const (
	wantFile, mostFile = 300, 450
	wantFunc, mostFunc = 45, 80
	mostMain           = 30
)

func TestSizes(t *testing.T) {
	eachGoFile(t, func(path string, fset *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, ".pb.go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		judge(t, path, fset.Position(file.End()).Line, wantFile, mostFile)
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			most := mostFunc
			if file.Name.Name == "main" && fn.Name.Name == "main" {
				most = mostMain
			}
			judge(t, path+" "+fn.Name.Name, fset.Position(fn.End()).Line-fset.Position(fn.Pos()).Line+1, wantFunc, most)
		}
	})
}

func judge(t *testing.T, what string, lines, want, most int) {
	t.Helper()
	switch {
	case lines > most:
		t.Errorf("%s has %d lines, at most %d are allowed", what, lines, most)
	case lines > want:
		t.Logf("%s has %d lines, better at most %d", what, lines, want)
	}
}
