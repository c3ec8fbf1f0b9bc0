// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/sandbox"
	"github.com/tlsd/tlsd/internal/testca"
)

// A key process says of itself what is in force there, and what it says is so.
func TestKeyProcessReportsItself(t *testing.T) {
	attr, uid := asNobody()
	dir := tempDirFor(t, uid)
	cmd := childCommand(dir)
	cmd.SysProcAttr = attr
	c := startRaw(t, cmd)
	report := func() *pb.Isolation {
		t.Helper()
		resp, err := c.api.Health(t.Context(), &pb.HealthRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetIsolation()
	}
	if before := report(); before.GetLandlock() != "" || before.GetLandlockMissing() == "" {
		t.Errorf("before it is configured: %v", before)
	}
	src := sourceFor(t, dir, uid)
	c.configure(t, testSettings{}, src)

	got := report()
	if int(got.GetUid()) != uid || got.GetEndpoint() || got.GetDumpable() || !got.GetCoreLimitZero() {
		t.Errorf("report is %v", got)
	}
	if want := strings.Join(src.Paths, " "); strings.Join(got.GetKeystores(), " ") != want {
		t.Errorf("keystores are %q, want %q", got.GetKeystores(), want)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if inForce := strings.Contains(string(status), "NoNewPrivs:\t1\n"); got.GetNoNewPrivs() != inForce {
		t.Errorf("no_new_privs is reported as %v and is %v", got.GetNoNewPrivs(), inForce)
	}
	if abi := sandbox.ABI(); abi > 0 && !strings.HasPrefix(got.GetLandlock(), fmt.Sprintf("abi %d, reads below /", abi)) {
		t.Errorf("landlock is %q (%s)", got.GetLandlock(), got.GetLandlockMissing())
	}
	c.wantExit(t)
}

// A tier that says that files are enough for it can do nothing else, and goes on
// reading its keystores whatever becomes of their directory.
func TestConfinedKeyProcessReadsItsKeystoresOnly(t *testing.T) {
	if sandbox.ABI() == 0 {
		t.Skip("NOT CHECKED: this kernel has no Landlock")
	}
	dir := shortTempDir(t)
	src := sourceFor(t, dir, os.Getuid())
	h := startHost(t, "", func(s *hostSetup) {
		s.cmd.Tier, s.spec.Sources = "test", []keymanager.Source{src}
	})
	other := filepath.Join(t.TempDir(), "trust.pem")
	if err := os.WriteFile(other, testca.NewRoot(t, testca.Spec{Name: "ca"}).CertPEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Trust(t.Context(), other, "", keymanager.PasswordRef{}); err == nil {
		t.Error("a file that was not named could be read")
	}

	keys := filepath.Dir(src.Paths[0])
	for range 2 {
		if err := os.Rename(keys, keys+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(keys, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, p := range src.Paths {
			b, err := os.ReadFile(filepath.Join(keys+".old", filepath.Base(p)))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(keys + ".old"); err != nil {
			t.Fatal(err)
		}
		if err := h.Reload(t.Context()); err != nil {
			t.Errorf("reload from a directory made anew: %v", err)
		}
	}
}
