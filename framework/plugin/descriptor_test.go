// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func fdPath(f *os.File) string { return fmt.Sprintf("/dev/fd/%d", f.Fd()) }

// pipeWith returns the reading end of a pipe that content is written to.
func pipeWith(t *testing.T, content []byte) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.Write(content)
		_ = w.Close()
	}()
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func socketWith(t *testing.T, content []byte) *os.File {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(fds[1]), "writer")
	go func() {
		_, _ = w.Write(content)
		_ = w.Close()
	}()
	r := os.NewFile(uintptr(fds[0]), "reader")
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestDescriptorsCanBeReadAgainAndAgain(t *testing.T) {
	content := bytes.Repeat([]byte("keystore "), 100_000) // more than a pipe holds
	path := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tests := []struct {
		name string
		from *os.File
	}{{"file", file}, {"pipe", pipeWith(t, content)}, {"socket", socketWith(t, content)}}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for round := range 2 { // the second key process is handed what the first was
				spec := Spec{Files: []string{fdPath(tc.from)}}
				there, d, err := openDescriptors(t.Context(), spec, 5)
				if err != nil {
					t.Fatal(err)
				}
				defer d.close()
				if there.Files[0] != spec.Files[0] {
					t.Errorf("called %q there", there.Files[0])
				}
				for range 2 {
					got, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", d.byFD[int(tc.from.Fd())].Fd()))
					if err != nil || !bytes.Equal(got, content) {
						t.Errorf("round %d: %d bytes, %v", round, len(got), err)
					}
				}
			}
		})
	}
}

func TestPipedKeystoreOutlivesItsProcess(t *testing.T) {
	var certFD, keyFD *os.File
	h := startHost(t, "", func(s *hostSetup) {
		paths := s.spec.Sources[0].Paths
		cert, _ := os.ReadFile(paths[0])
		key, _ := os.ReadFile(paths[1])
		certFD, keyFD = pipeWith(t, cert), pipeWith(t, key)
		s.spec.Sources = []keymanager.Source{{Paths: []string{fdPath(certFD), fdPath(keyFD)}}}
	})
	h.mustSign(t, mustSelect(t, h.Host).Key)
	_ = killProcess(h.Describe().PID)
	h.mustSign(t, mustSelect(t, h.Host).Key)

	// Another configuration with the same paths, beside the first.
	other := startHost(t, "", func(s *hostSetup) {
		s.spec.Sources = []keymanager.Source{{Paths: []string{fdPath(certFD), fdPath(keyFD)}}}
	})
	other.leaf = h.leaf
	other.mustSign(t, mustSelect(t, other.Host).Key)
}

func TestMovedDescriptorIsNamedAsTheUserDid(t *testing.T) {
	stdin := pipeWith(t, []byte("no certificate"))
	saved, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Dup2(saved, 0)
		_ = unix.Close(saved)
	}()
	if err := unix.Dup2(int(stdin.Fd()), 0); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Settings: []byte(`{}`), Sources: []keymanager.Source{{Paths: []string{"/dev/stdin", "/dev/stdin"}}}}
	_, err = Start(t.Context(), Command{Tier: "rowdy"}, spec, HostOptions{RunDir: shortTempDir(t)})
	if err == nil || !strings.Contains(err.Error(), `"/dev/stdin,/dev/stdin"`) {
		t.Errorf("start: %v", err)
	}
}

func TestTrustStoreMayBeADescriptor(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	store, other := fdPath(pipeWith(t, root.CertPEM())), fdPath(pipeWith(t, root.CertPEM()))
	h := startHost(t, "", func(s *hostSetup) { s.spec.Files = []string{store} })
	for range 2 {
		ders, _, err := h.Trust(t.Context(), store, "", keymanager.PasswordRef{})
		if err != nil || len(ders) != 1 || !bytes.Equal(ders[0], root.DER) {
			t.Errorf("%d certificates, %v", len(ders), err)
		}
	}
	if _, _, err := h.Trust(t.Context(), other, "", keymanager.PasswordRef{}); err == nil || !strings.Contains(err.Error(), "was not named when the key process started") {
		t.Errorf("trust of a descriptor that nobody passed on: %v", err)
	}
	if _, _, err := h.Trust(t.Context(), "/nowhere.pem", "", keymanager.PasswordRef{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("trust of a missing file: %v", err)
	}
}

func TestDescriptorsThatCannotBePassedOn(t *testing.T) {
	endless, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer endless.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct{ name, path, want string }{
		{"not-open", "/dev/fd/987", `pass "/dev/fd/987" to the key process: descriptor 987 is not open`},
		{"never-written", fdPath(endless), "context canceled"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := openDescriptors(ctx, Spec{Files: []string{tc.path}}, 5)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFileThatOnlyItsOpenerMayReadIsCopied(t *testing.T) {
	testca.Root(t, "to open what another user may not")
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("content"), 0o400); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mem, err := newMemfd(func(fd int) error { return copyFileTo(fd, int(file.Fd())) })
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	got, err := io.ReadAll(io.NewSectionReader(mem, 0, 100))
	if err != nil || string(got) != "content" {
		t.Errorf("copied %q, %v", got, err)
	}
	if _, err := mem.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("write to the copy: %v", err)
	}
}

func TestDescriptorNumber(t *testing.T) {
	tests := []struct {
		path string
		want int // -1: none
	}{
		{"/dev/stdin", 0}, {"/dev/fd/63", 63}, {"/proc/self/fd/7", 7}, {"/dev//fd/3", 3},
		{"/dev/fd/", -1}, {"/dev/fd/x", -1}, {"/dev/fd/-1", -1}, {"/dev/null", -1}, {"dev/fd/3", -1},
	}
	for _, tc := range tests {
		t.Run(strings.ReplaceAll(tc.path, "/", "_"), func(t *testing.T) {
			n, ok := descriptorNumber(tc.path)
			if !ok {
				n = -1
			}
			if n != tc.want {
				t.Errorf("got %d, want %d", n, tc.want)
			}
		})
	}
}

func TestPathThatTheWireCannotCarry(t *testing.T) {
	for _, spec := range []Spec{
		{Sources: []keymanager.Source{{Paths: []string{"/a\xff.p12"}}}},
		{Sources: []keymanager.Source{{Paths: []string{"/a"}, Store: keymanager.PasswordRef{File: "/a\xff.p12"}}}},
	} {
		_, _, err := openDescriptors(t.Context(), spec, 3)
		want := `pass "/a\xff.p12" to the key process: its name is not UTF-8; give the file another, or name a link to it`
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestPathsAreMadeAbsoluteInACopy(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Sources: []keymanager.Source{{
			Paths: []string{"a.p12"}, Store: keymanager.PasswordRef{File: "a.pass"},
			Keys: []keymanager.KeyPassword{{Alias: "k", Password: keymanager.PasswordRef{File: "k.pass"}}},
		}},
		Files: []string{"trust.jks"},
	}
	there, d, err := openDescriptors(t.Context(), spec, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	abs := func(name string) string { return filepath.Join(here, name) }
	want := Spec{
		Sources: []keymanager.Source{{
			Paths: []string{abs("a.p12")}, Store: keymanager.PasswordRef{File: abs("a.pass")},
			Keys: []keymanager.KeyPassword{{Alias: "k", Password: keymanager.PasswordRef{File: abs("k.pass")}}},
		}},
		Files: []string{abs("trust.jks")},
	}
	if diff := cmp.Diff(want, there); diff != "" {
		t.Error(diff)
	}
	if spec.Sources[0].Paths[0] != "a.p12" || spec.Sources[0].Keys[0].Password.File != "k.pass" {
		t.Errorf("the caller's spec was changed: %+v", spec)
	}
}
