// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package ballast

import (
	"runtime"
	"testing"
)

func TestBallast(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"by_itself":    {nil, true},
		"gogc":         {map[string]string{"GOGC": "50"}, false},
		"memory_limit": {map[string]string{"GOMEMLIMIT": "64MiB"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := liveHeap()
			drop := Keep(func(name string) string { return c.env[name] })

			if got := liveHeap() > before+size/2; got != c.want {
				t.Errorf("ballast %v, want %v", got, c.want)
			}
			drop()
			if liveHeap() > before+size/2 {
				t.Error("it is still there")
			}
		})
	}
}

// liveHeap is what a collection leaves, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
