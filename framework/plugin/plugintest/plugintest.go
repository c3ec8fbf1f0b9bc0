// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package plugintest runs the suite of keymanagertest over a plugin in a process
// of its own, for the authors of plugins: as a child of the test binary, which
// is how a program that embeds the tier has it, and as an executable.
//
// A test binary whose tier is to be a child of it calls plugin.Main with the
// tier first in TestMain.
package plugintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keymanager/keymanagertest"
	"github.com/tlsd/tlsd/framework/plugin"
)

// Run builds the package in the working directory, which is a plugin's main, and
// runs the suite over a child of this test binary and over what was built.
func Run(t *testing.T, tier string, caps keymanagertest.Caps) {
	for name, path := range map[string]string{"child": "", "executable": Build(t, ".")} {
		t.Run(name, func(t *testing.T) {
			keymanagertest.Run(t, keymanagertest.Config{Open: Open(tier, path), Caps: caps})
		})
	}
}

// Build builds a main package and returns the path of the executable, which is
// removed when the test ends.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tlsd-keymanager")
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %q: %v\n%s", pkg, err, out)
	}
	return path
}

// Open returns what opens a tier in a process of its own, with the executable at
// path, or with this test binary where path is empty. The process is ended, and
// has to have left nothing behind, when the test ends.
func Open(tier, path string) keymanagertest.OpenFunc {
	return func(t testing.TB, env keymanager.Env) (keymanager.KeyManager, error) {
		t.Helper()
		h, err := plugin.Start(t.Context(), plugin.Command{Tier: tier, Path: path},
			plugin.Spec{Sources: env.Builders, Settings: env.Settings, Options: env.Options}, plugin.HostOptions{RunDir: runDir(t)})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		return h, nil
	}
}

// runDir makes a directory with a name shorter than t.TempDir gives, as sockets
// want it. A key manager has to leave nothing in it.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tlsd-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
