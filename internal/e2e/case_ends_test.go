// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseO03_NoDelay: without one the listener closes at once, what is open goes
// on, and the key process is there until it has ended.
func TestCaseO03_NoDelay(t *testing.T) {
	t.Parallel()
	d, s := proxying(t, byLine(t))
	open, err := tls.Dial("tcp", d.addr, clientOf(s))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	mustEchoOver(t, open)
	keys := childrenOf(d.cmd.Process.Pid)
	began := time.Now()
	syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
	d.untilRefused(t, s)
	if took := time.Since(began); took > 3*time.Second { // on a busy machine
		t.Errorf("refused after %v", took)
	}
	mustEchoOver(t, open)
	if now := childrenOf(d.cmd.Process.Pid); !slices.Equal(now, keys) {
		t.Errorf("key processes %v became %v while a connection was open", keys, now)
	}
	open.Close()
	d.mustHaveEnded(t, keys)
}

// TestCaseX08_OneLine for one connection that found nothing, which ends in good time
// and as TLS has it.
func TestCaseX08_OneLine(t *testing.T) {
	t.Parallel()
	d, s := proxying(t, fmt.Sprintf(`{backend: "tcp://%s"}`, freeAddr(t)))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conf := clientOf(s)
		conf.MaxVersion = version
		before := d.count(`"backend failed"`)
		c, err := tls.Dial("tcp", d.addr, conf)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF { // crypto/tls: only after close_notify
			t.Errorf("%s: read: %v, want the end", tls.VersionName(version), err)
		}
		c.Close()
		d.awaitLines(before+1, `"backend failed"`)
		time.Sleep(1200 * time.Millisecond) // the next second's line is its own
		if n := d.count(`"backend failed"`); n != before+1 {
			t.Errorf("%s: %d lines for a connection\n%s", tls.VersionName(version), n-before, d.log)
		}
	}
}

// TestCaseP03_NobodyIsLeft of what is no plugin, whatever it does instead, and its
// end doesn't take longer than a start may.
func TestCaseP03_NobodyIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	for name, text := range map[string]string{
		"prints-first": "echo hello\nexec REAL\n",
		"sleeps":       "exec REAL-sleep 60\n",
		"stubborn":     "trap '' TERM INT HUP\nwhile :; do REAL-sleep 1; done\n",
		"floods":       "exec REAL-yes\n",
		"ends":         "exit 7\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real := filepath.Join(dir, name+"-real")
			for program, path := range map[string]string{bin("tlsd-keymanager-pkix"): real, "/bin/sleep": real + "-sleep", "/usr/bin/yes": real + "-yes"} {
				if err := os.Symlink(program, path); err != nil {
					t.Fatal(err)
				}
			}
			plugin := filepath.Join(dir, name)
			testca.WriteProgram(t, plugin, []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "REAL", real)), 0o700)
			began := time.Now()
			out, err := command(t, bin("tlsd"), append(s.args(), "--listen", freeAddr(t), "--plugin", "x="+plugin, "--keymanager", "x")...)
			if err == nil || !strings.Contains(out, plugin) {
				t.Errorf("%v, want the path\n%.2000s", err, out)
			}
			if took := time.Since(began); took > 20*time.Second { // 15 s on a quiet machine
				t.Errorf("it took %v", took)
			}
			await(t, "end of all that it started", func() []int {
				return slices.Concat(pidsWith(real), pidsWith("\x00"+plugin+"\x00"))
			}, func(pids []int) bool { return len(pids) == 0 })
		})
	}
}

// TestCaseP05_ReadOnlyDirectory is passed over where it is TMPDIR, and refused where
// it is configured.
func TestCaseP05_ReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	unshare, dir := testca.Tool(t, "unshare"), t.TempDir()
	if out, err := exec.Command(unshare, "--mount", "true").CombinedOutput(); err != nil {
		noNamespaces(t, fmt.Errorf("%w %s", err, out))
	}
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	sealed := filepath.Join(dir, "sealed")
	if err := os.Mkdir(sealed, 0o700); err != nil {
		t.Fatal(err)
	}
	config := writeFile(t, filepath.Join(dir, "tlsd.yaml"), []byte("run_dir: "+sealed+"\n"))
	const script = `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"`
	out, err := command(t, unshare, append([]string{"--mount", "/bin/sh", "-c", script, sealed, bin("tlsd"),
		"--listen", freeAddr(t), "--config", config}, s.args()...)...)
	if err == nil || !strings.Contains(out, sealed) || !strings.Contains(out, "read-only file system") {
		t.Errorf("%v, want the directory and why\n%s", err, out)
	}
}
