// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseP01_GapOfEachVersion: who comes while there is no key process is served,
// or is told, soon; a warning says how each ended.
func TestCaseP01_GapOfEachVersion(t *testing.T) {
	t.Parallel()
	d, s := echoing(t)
	pid := 0
	for i, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13, tls.VersionTLS12} {
		conf := clientOf(s)
		conf.MinVersion, conf.MaxVersion = version, version
		open := d.openLine(conf)
		pid = d.keyProcess(pid)
		syscall.Kill(pid, syscall.SIGKILL)
		for ended := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			began := time.Now()
			c, err := d.handshake(conf)
			if took := time.Since(began); took > 4*time.Second { // 2 s on a quiet machine
				t.Errorf("%s: a handshake took %v", tls.VersionName(version), took)
			}
			if err == nil {
				c.Close()
				break
			}
			if !ourFault(err) {
				t.Errorf("%s: %v, want alert 80 or 40", tls.VersionName(version), err)
			}
			if time.Since(ended) > 20*time.Second {
				t.Fatalf("not served any more\n%s", d.log)
			}
		}
		open.mustWork()
		if n := len(d.awaitLines(i+1, `"level":"warn"`, `"key process ended"`, "signal: killed")); n != i+1 {
			t.Errorf("%d warnings of %d deaths", n, i+1)
		}
	}
}

// TestCaseP06_TenKeystores, each of which is served, by the same key process, which
// opens and starts nothing that it keeps.
func TestCaseP06_TenKeystores(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"pkix", "pkixcached"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			root := rootOf(t, testca.P256)
			s := storeWith(t, issue(t, root, testca.Spec{Name: "first"}))
			d := start(t, append(s.args(), "--keymanager", tier)...)
			key := d.keyProcess(0)
			pids := []int{d.cmd.Process.Pid, key}
			var before []int
			for i := range 10 {
				name := fmt.Sprint("gen", i)
				testca.WritePKCS12(t, s.path, "changeit", entry(issue(t, root, testca.Spec{Name: name})))
				syscall.Kill(d.cmd.Process.Pid, syscall.SIGHUP)
				awaitServed(t, d, "w.test", name)
				if i == 0 {
					before = kept(t, pids)
				}
			}
			if now := childrenOf(d.cmd.Process.Pid); !slices.Equal(now, []int{key}) {
				t.Errorf("key process %d became %v", key, now)
			}
			await(t, fmt.Sprintf("descriptors back to %v", before), func() []int { return kept(t, pids) }, func(now []int) bool {
				return now[0] <= before[0]+2 && now[1] <= before[1]+2 // connections on their way out
			})
		})
	}
}

// kept returns how many descriptors each process has open.
func kept(t *testing.T, pids []int) (n []int) {
	t.Helper()
	for _, pid := range pids {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		n = append(n, len(entries))
	}
	return n
}

// TestCaseP07_SecondSignal ends tlsd soon, with status 0, while its key process can't
// stay.
func TestCaseP07_SecondSignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	calm, plugin := writeFile(t, filepath.Join(dir, "calm"), nil), filepath.Join(dir, "plugin")
	testca.WriteProgram(t, plugin, fmt.Appendf(nil, "#!/bin/sh\n[ -e %s ] || { sleep 0.2; exit 3; }\nexec %s\n", calm, bin("tlsd-keymanager-pkixcached")), 0o700)
	d, s := echoing(t, "--plugin", "x="+plugin, "--keymanager", "x")
	open := d.openLine(clientOf(s))
	open.mustWork()
	if err := os.Remove(calm); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(d.keyProcess(0), syscall.SIGKILL)
	d.awaitLines(3, `"key process not started"`)
	if n := len(childrenOf(d.cmd.Process.Pid)); n > 1 {
		t.Errorf("%d key processes at once", n)
	}
	open.mustWork()
	syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
	d.awaitLog(`"ending"`)
	syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
	d.ended = true
	select {
	case err := <-d.exited:
		if err != nil {
			t.Errorf("tlsd ended with %v\n%s", err, d.log)
		}
	case <-time.After(5 * time.Second):
		d.cmd.Process.Kill()
		t.Error("a second SIGTERM did not end tlsd")
	}
	if left := pidsNaming(plugin); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}
