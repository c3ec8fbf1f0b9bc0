// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// unitSettings returns the values of a setting of a unit.
func unitSettings(t *testing.T, path, setting string) (values []string) {
	t.Helper()
	unit, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(unit)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), setting+"="); ok {
			values = append(values, v)
		}
	}
	return values
}

// TestFaultUnitsRestartAfterACrash: systemd restarts what ended by a signal, and
// not what ended with the status of a wrong configuration, which is Go's of a crash
// too. SIGABRT is the watchdog's; SIGSEGV stands for a fault.
func TestFaultUnitsRestartAfterACrash(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	password, err := os.ReadFile(s.password)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "e2e") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	keys := []string{"--keystore", s.path, "--keystore-password-file", s.password, "--log-format", "json"}
	for unit, args := range map[string][]string{
		"tlsd.service":               append([]string{"--listen", freeAddr(t)}, keys...),
		"endpoint/tlsd.service":      append([]string{"--listen", freeAddr(t)}, keys...),
		"endpoint/tlsd-keys.service": append([]string{"keymanager", "serve", "--allow-user", "0", "--listen", "unix:" + filepath.Join(dir, "s")}, keys...),
	} {
		path := filepath.Join("../../deploy", unit)
		if got := unitSettings(t, path, "RestartPreventExitStatus"); len(got) != 1 || got[0] != "2" {
			t.Errorf("%s gives up at %q", unit, got)
		}
		for _, sig := range []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV} {
			state, log := crash(t, unitSettings(t, path, "Environment"), args, sig)
			if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGABRT {
				t.Errorf("%s: %v ends it with %v, want SIGABRT", unit, sig, state)
			}
			if !strings.Contains(log, "goroutine ") || strings.Contains(log, string(bytes.TrimSpace(password))) {
				t.Errorf("%s: %v: the log has no goroutine, or the password", unit, sig)
			}
		}
	}
}

// crash starts tlsd with an environment, without core dumps, as the units have it,
// sends it a signal when it is ready, and returns how it ended and its log.
func crash(t *testing.T, env, args []string, sig syscall.Signal) (*os.ProcessState, string) {
	t.Helper()
	log := &buffer{}
	cmd := exec.Command("/bin/sh", append([]string{"-c", `ulimit -c 0; exec "$0" "$@"`, bin("tlsd")}, args...)...)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+t.TempDir(), "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY="), env...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	await(t, "start", log.String, func(log string) bool {
		return strings.Contains(log, `"msg":"listening"`) || strings.Contains(log, `"msg":"endpoint ready"`)
	})
	cmd.Process.Signal(sig)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatalf("%v does not end it:\n%s", sig, log)
	}
	return cmd.ProcessState, log.String()
}
