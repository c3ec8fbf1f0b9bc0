// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// shortest is how long each kind of trouble takes to come once.
const shortest = 8 * time.Second

func duration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TLSD_SOAK")
	if text == "" {
		t.Skip("make soak runs it: TLSD_SOAK says for how long")
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < shortest {
		t.Fatalf("TLSD_SOAK=%q: give a duration of %v or more", text, shortest)
	}
	return d
}

// TestSoak asserts: no wrong answer, which is a certificate that is none of the
// latest, or bytes that aren't the backend's; no failure but full handshakes with
// the right alert while the key process is away; and that nothing grows.
func TestSoak(t *testing.T) {
	length := duration(t)
	k := newKeystore(t)
	d := startDaemon(t, k)
	var (
		stop = make(chan struct{})
		all  sync.WaitGroup
		load = newLoad(d, k)
		fate = &fate{d: d, k: k, load: load}
		g    = &gauges{d: d}
	)
	every := func(pause time.Duration, f func()) {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(pause):
					f()
				}
			}
		})
	}
	for _, c := range load.clients() {
		every(5*time.Millisecond, c)
	}
	every(2*time.Second, fate.rotate)
	every(3*time.Second, fate.reload)
	// One after the other: each waits for the end of what it has brought about.
	every(length/20+time.Second, func() { fate.strike(syscall.SIGKILL) })
	every(length/10+2*time.Second, func() { fate.strike(syscall.SIGSTOP) })
	every(time.Second, g.sample)
	time.Sleep(length)
	close(stop)
	all.Wait()

	t.Log("\n" + load.table() + fate.table() + g.table())
	load.judge(t)
	fate.judge(t)
	g.judge(t)
	if t.Failed() {
		t.Log(d.tail())
	}
}

func row(name string, columns ...any) string {
	line := fmt.Sprintf("%-28s", name)
	for _, c := range columns {
		line += fmt.Sprintf(" %12v", c)
	}
	return line + "\n"
}
