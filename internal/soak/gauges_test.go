// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
)

// gauges are what must not grow.
type gauges struct {
	d       *daemon
	samples []sample
}

// sample is taken each second. A value that could not be had is -1.
type sample [5]int

// measures are the names of a sample's values, and how much the last third of
// the samples may be above the first: a share and an amount, since what is small
// varies more.
var measures = [len(sample{})]struct {
	name   string
	share  float64
	amount int
}{
	{"front: goroutines", 0.2, 50},
	{"front: descriptors", 0.2, 30},
	{"front: RSS, MiB", 0.25, 12},
	{"key process: descriptors", 0.2, 10},
	{"key process: RSS, MiB", 0.25, 12},
}

// sample measures while there is one key process, which is not being replaced.
func (g *gauges) sample() {
	keys := g.d.keyProcesses()
	if len(keys) != 1 {
		return
	}
	g.samples = append(g.samples, sample{
		g.d.metric("go_goroutines"), descriptors(g.d.pid), rss(g.d.pid), descriptors(keys[0]), rss(keys[0]),
	})
}

// descriptors counts the open ones. Those of a key process only root can see.
func descriptors(pid int) int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return -1
	}
	return len(open)
}

func rss(pid int) int {
	kib, err := strconv.Atoi(status(pid, "VmRSS:"))
	if err != nil {
		return -1
	}
	return kib >> 10
}

// thirds returns the medians of the first and of the last third, and the most.
func (g *gauges) thirds(measure int) (first, last, most int) {
	third := max(1, len(g.samples)/3)
	median := func(part []sample) int {
		var values []int
		for _, s := range part {
			values = append(values, s[measure])
			most = max(most, s[measure])
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	if len(g.samples) == 0 {
		return -1, -1, -1
	}
	median(g.samples)
	return median(g.samples[:third]), median(g.samples[len(g.samples)-third:]), most
}

func (g *gauges) table() string {
	s := row("median of", "first third", "last third", "most")
	for i, m := range measures {
		first, last, most := g.thirds(i)
		s += row(m.name, first, last, most)
	}
	return s + row("children at the end", len(g.d.keyProcesses()))
}

func (g *gauges) judge(t *testing.T) {
	t.Helper()
	if len(g.samples) < 3 {
		t.Errorf("only %d samples", len(g.samples))
	}
	for i, m := range measures {
		first, last, _ := g.thirds(i)
		if limit := int(float64(first)*(1+m.share)) + m.amount; last > limit {
			t.Errorf("%s grew from %d to %d", m.name, first, last)
		}
	}
	if n := len(g.d.keyProcesses()); n != 1 {
		t.Errorf("%d children at the end, want the key process", n)
	}
}
