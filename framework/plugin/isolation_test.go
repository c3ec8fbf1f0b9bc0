// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
)

func find(t *testing.T, findings []Finding, name string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no finding %q in %v", name, findings)
	return Finding{}
}

// A child is of the same user, which the front says, having tried.
func TestIsolationOfAChild(t *testing.T) {
	src := sourceFor(t, shortTempDir(t), os.Getuid())
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Tier, s.spec.Sources = "test", []keymanager.Source{src} })
	findings, err := h.Isolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"process": true, "users": false, "core_dumps": true, "socket": true, "keystore": false} {
		if f := find(t, findings, name); f.OK != ok || f.Value == "" || f.Remedy == "" && !ok {
			t.Errorf("%s: %+v, want OK to be %v", name, f, ok)
		}
	}
}

func TestIsolationOfATierThatNeedsMoreThanFiles(t *testing.T) {
	h := startHost(t, "")
	findings, err := h.Isolation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := find(t, findings, "landlock"); f.OK || !strings.Contains(f.Value, "the tier may need more") {
		t.Errorf("landlock: %+v", f)
	}
}

func TestNothingIsIsolatedInProcess(t *testing.T) {
	src, _ := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	l, err := InProcess(t.Context(), testTier(), Spec{Sources: []keymanager.Source{src}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	findings, err := l.Isolation(t.Context())
	if err != nil || len(findings) != 1 || findings[0].OK {
		t.Errorf("isolation is %v, %v", findings, err)
	}
}

// Every "no" that a key process reports is one that the front passes on, with
// what to do.
func TestEachNoIsFound(t *testing.T) {
	good := func() *pb.Isolation {
		return &pb.Isolation{Uid: uint32(os.Getuid() + 1), NoNewPrivs: true, CoreLimitZero: true, Landlock: "abi 7"}
	}
	for _, f := range judge(good(), "") {
		if !f.OK {
			t.Errorf("%+v", f)
		}
	}
	for name, spoil := range map[string]func(*pb.Isolation){
		"users":        func(m *pb.Isolation) { m.Uid = uint32(os.Getuid()) },
		"dumpable":     func(m *pb.Isolation) { m.Dumpable = true },
		"core_dumps":   func(m *pb.Isolation) { m.CoreLimitZero = false },
		"no_new_privs": func(m *pb.Isolation) { m.NoNewPrivs = false },
		"landlock":     func(m *pb.Isolation) { m.Landlock, m.LandlockMissing = "", "old\x1b[2J kernel" },
	} {
		m := good()
		spoil(m)
		for _, f := range judge(m, "") {
			if f.OK == (f.Name == name) {
				t.Errorf("%s: %+v", name, f)
			}
			if strings.Contains(f.Value, "\x1b") || !f.OK && f.Remedy == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

func TestSocketsThatOthersCanReach(t *testing.T) {
	for _, tc := range []struct {
		file, dir os.FileMode
		ok        bool
	}{{0o600, 0o755, true}, {0o660, 0o755, true}, {0o666, 0o750, true}, {0o666, 0o755, false}, {0o666, 0o701, false}} {
		dir := shortTempDir(t)
		path := filepath.Join(dir, "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := os.Chmod(path, tc.file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, tc.dir); err != nil {
			t.Fatal(err)
		}
		if f := judgeSocket(path); f.OK != tc.ok {
			t.Errorf("%v: %+v", tc, f)
		}
	}
	if f := judgeSocket(filepath.Join(t.TempDir(), "missing")); f.OK {
		t.Errorf("missing: %+v", f)
	}
}

func TestKeystoresThatTheFrontCanOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "the front can open " + file, filepath.Join(dir, "missing"): "can't open " + filepath.Join(dir, "missing") + ": no such file",
		dir: "not known", "/dev/fd/7": "handed it on",
	} {
		if f := judgeKeystore(path); f.OK != strings.Contains(want, "can't") || !strings.Contains(f.Value, want) {
			t.Errorf("%s: %+v, want %q", path, f, want)
		}
	}
}

// sourceFor is pairSource below dir, readable by uid alone.
func sourceFor(t *testing.T, dir string, uid int) keymanager.Source {
	t.Helper()
	src, _ := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	keys := filepath.Join(dir, "keys")
	if err := os.Mkdir(keys, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, path := range src.Paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		src.Paths[i] = filepath.Join(keys, filepath.Base(path))
		if err := os.WriteFile(src.Paths[i], b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(src.Paths[i], uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return src
}
