// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFaultX10_OutOfDescriptors: what is held is served, tlsd waits without
// turning, and goes on when there is room again.
func TestFaultX10_OutOfDescriptors(t *testing.T) {
	t.Parallel()
	d, s := proxying(t, byLine(t))
	keys := childrenOf(d.cmd.Process.Pid)
	limit := unix.Rlimit{Cur: 128, Max: 128}
	for _, pid := range append([]int{d.cmd.Process.Pid}, keys...) {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
			t.Fatal(err)
		}
	}
	open, err := tls.Dial("tcp", d.addr, clientOf(s))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	mustEchoOver(t, open) // before it can be one too many
	var held []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	d.awaitLog(`"accept failed"`)
	before, began := d.cpu(), time.Now()
	for range 10 {
		mustEchoOver(t, open)
		time.Sleep(200 * time.Millisecond)
	}
	if used, passed := d.cpu()-before, time.Since(began); used > passed/5 {
		t.Errorf("%v of CPU in %v", used, passed)
	}
	if n := strings.Count(d.log.String(), `"accept failed"`); n > 2+int(time.Since(began).Seconds()) {
		t.Errorf("%d lines in %v", n, time.Since(began))
	}
	for _, c := range held {
		c.Close()
	}
	freed := time.Now()
	d.untilEchoes(t, s).Close()
	if took := time.Since(freed); took > 5*time.Second {
		t.Errorf("served after %v", took)
	}
	mustEchoOver(t, open)
	if now := childrenOf(d.cmd.Process.Pid); fmt.Sprint(now) != fmt.Sprint(keys) {
		t.Errorf("key process %v became %v", keys, now)
	}
}

// cpu returns the CPU time that tlsd has used.
func (d *daemon) cpu() time.Duration {
	d.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var user, system int64
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * time.Second / 100
}
