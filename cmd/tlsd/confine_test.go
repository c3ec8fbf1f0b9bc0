// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
)

// A front of an endpoint keeps what it is configured with and the system's
// files, and a front with a key process of its own keeps everything.
func TestRulesOfAFront(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"conf/d", "crl/d", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	eff := &config.Effective{File: filepath.Join(dir, "conf", "d", "tlsd.yaml"), Admin: "unix:" + filepath.Join(dir, "run", "admin.sock")}
	eff.KeyManager = "pkix"
	if got := confine(eff); got != nil {
		t.Errorf("confined with a child: %v", got)
	}
	eff.Listeners = []framework.Listener{{Listen: "127.0.0.1:1", Hosts: []framework.Host{{ClientCRL: filepath.Join(dir, "crl", "d", "a.crl")}}}}
	r := frontRules(eff)
	for _, want := range []string{filepath.Join(dir, "conf"), filepath.Join(dir, "crl"), "/etc", "/usr"} {
		if !slices.Contains(r.Read, want) {
			t.Errorf("%q can't be read, only below %q", want, r.Read)
		}
	}
	for _, never := range []string{"/", "/home", "/root", "/var", "/run", "/tmp", dir} {
		if slices.Contains(r.Read, never) {
			t.Errorf("%q may be read", never)
		}
	}
	if !slices.Equal(r.Write, []string{filepath.Join(dir, "run")}) || !r.Outside {
		t.Errorf("may write below %q; network: %v", r.Write, r.Outside)
	}
	exe, err := os.Executable()
	if err != nil || !slices.Contains(r.Execute, filepath.Dir(exe)) || slices.Contains(r.Execute, "/") {
		t.Errorf("may run %q (%v)", r.Execute, err)
	}
}

// An upgrade runs what a link leads to by then: in another directory beside the one
// that it leads to now. What lies right below the root's child opens nothing more.
func TestExecutablesOfAnUpgrade(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"local/bin", "versions/1"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "local/bin/tlsd")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "versions/1/tlsd"), nil, 0o755), os.Symlink("../../versions/1/tlsd", link)); err != nil {
		t.Fatal(err)
	}
	got := executables(link)
	for _, want := range []string{filepath.Join(dir, "local"), filepath.Join(dir, "versions")} {
		if !slices.Contains(got, want) {
			t.Errorf("nothing below %q, only below %q", want, got)
		}
	}
	if got := executables("/tlsd"); slices.Contains(got, "/") {
		t.Errorf("all may be run: %q", got)
	}
}
