// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keymanager/keymanagertest"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/plugins/pkix"
)

func TestMain(m *testing.M) {
	plugin.Main(pkix.Tier())
	os.Exit(m.Run())
}

// TestTierInItsProcess runs the suite over a child of this test binary, as a
// program that embeds the tier has it, and over the executable.
func TestTierInItsProcess(t *testing.T) {
	for name, path := range map[string]string{"child": "", "executable": build(t)} {
		t.Run(name, func(t *testing.T) {
			keymanagertest.Run(t, keymanagertest.Config{Open: start(path), Caps: keymanagertest.Caps{NoReuse: true}})
		})
	}
}

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tlsd-keymanager-pkix")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func start(path string) keymanagertest.OpenFunc {
	return func(t testing.TB, env keymanager.Env) (keymanager.KeyManager, error) {
		h, err := plugin.Start(t.Context(), plugin.Command{Tier: "pkix", Path: path},
			plugin.Spec{Sources: env.Builders, Options: env.Options}, plugin.HostOptions{RunDir: runDir(t)})
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
