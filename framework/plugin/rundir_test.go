// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestRunDirectory(t *testing.T) {
	long := shortTempDir(t) + "/" + strings.Repeat("x", 80)
	open := shortTempDir(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	file := shortTempDir(t) + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, base, want string }{
		{"writable", shortTempDir(t), ""},
		{"made-if-only-it-is-missing", shortTempDir(t) + "/new", ""},
		{"parent-missing", "/nowhere/at/all", "no such file or directory"},
		{"file", file, "is no directory"},
		{"open-to-everybody", open, "writable by everybody and not sticky"},
		{"too-long", long, "too long for a socket in it"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := makeRunDir(runBases{dirs: []string{tc.base}, ours: tc.base})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if info, err := os.Stat(dir.Path); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("made %q: %v", dir.Path, err)
				}
				if err := dir.Remove(); err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrRunDir) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if left, _ := os.ReadDir(long); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestDefaultRunDirectories(t *testing.T) {
	env := map[string]string{"RUNTIME_DIRECTORY": "/run/tlsd:/run/other", "XDG_RUNTIME_DIR": "/run/user/1", "TMPDIR": "/var/tmp"}
	got := fmt.Sprintln(defaultRunBases(func(name string) string { return env[name] }))
	if want := "{[/run/tlsd /run/user/1/tlsd /var/tmp /tmp] /run/user/1/tlsd true}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprintln(defaultRunBases(func(string) string { return "" })); got != "{[/tmp]  true}\n" {
		t.Errorf("got %s, want /tmp", got)
	}
}

// A temporary directory that is missing is passed over, and not made for good.
func TestMissingTemporaryDirectoryStaysMissing(t *testing.T) {
	tmp, xdg := shortTempDir(t)+"/tmp", shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("RUNTIME_DIRECTORY", "")
	for _, tc := range []struct{ xdg, want string }{{xdg, xdg + "/tlsd/"}, {"", "/tmp/"}} {
		t.Setenv("XDG_RUNTIME_DIR", tc.xdg)
		dir, err := makeRunDir(defaultRunBases(os.Getenv))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(dir.Path, tc.want) {
			t.Errorf("made %q, want it in %q", dir.Path, tc.want)
		}
		if err := dir.Remove(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(tmp); err == nil {
		t.Error("TMPDIR was made")
	}
}

func TestUmaskDoesNotMatter(t *testing.T) {
	for _, umask := range []int{0, 0o777} {
		t.Run(fmt.Sprintf("%#o", umask), func(t *testing.T) {
			var saved int
			h := startHost(t, "", func(*hostSetup) { saved = syscall.Umask(umask) })
			syscall.Umask(saved)
			h.mustSign(t, mustSelect(t, h.Host).Key)
			dirs, err := os.ReadDir(h.dir)
			if err != nil || len(dirs) != 1 {
				t.Fatalf("run directories %v, %v", dirs, err)
			}
			if info, err := dirs[0].Info(); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}
