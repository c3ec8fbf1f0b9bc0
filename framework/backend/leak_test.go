// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package backend

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// within waits until f is at most most.
func within(t *testing.T, f func(*testing.T) int, most int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for f(t) > most {
		if time.Now().After(deadline) {
			t.Fatalf("%d open files, %d before", f(t), most)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestHundredFailuresLeaveNoDescriptor(t *testing.T) {
	w := newWorld(t)
	dead := deadAddress(t)
	t.Run("http", func(t *testing.T) {
		url := w.front(t, newProxy(t, "http://"+dead, nil))
		client := w.httpClient(t, true, false)
		get := func() {
			res, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusBadGateway {
				t.Fatalf("status %d", res.StatusCode)
			}
		}
		get()
		before := openFiles(t)
		for range 100 {
			get()
		}
		within(t, openFiles, before)
	})
	t.Run("bytes", func(t *testing.T) {
		addr, results := w.bytesFront(t, newBytes(t, "tcp://"+dead, nil))
		before := openFiles(t)
		for range 100 {
			conn := w.dialRaw(t, addr)
			if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			conn.Close()
			<-results
		}
		within(t, openFiles, before)
	})
}
