// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine of a run: CPUs, kernel, Go.
func Machine() string {
	return fmt.Sprintf("%d × %s, Linux %s, %s", runtime.NumCPU(), cpuModel(), firstLine("/proc/sys/kernel/osrelease"), runtime.Version())
}

// Busy returns the machine's load average of a minute, which says whether it had
// anything else to do.
func Busy() string {
	load, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return load
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func firstLine(path string) string {
	b, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// beginMark and endMark are around what runs write into a place of a page.
func beginMark(place string) string {
	return "<!-- bench: begin " + place + "; written by make bench -->\n"
}

const endMark = "<!-- bench: end -->\n"

// WritePage replaces what is between the marks of a place in a page.
func WritePage(path, place, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin := beginMark(place)
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ends := strings.Cut(rest, endMark)
	if !ok || !ends {
		return fmt.Errorf("write page %q: it has no %q with %q after it", path, strings.TrimSpace(begin), strings.TrimSpace(endMark))
	}
	return os.WriteFile(path, []byte(before+begin+text+endMark+after), 0o644)
}
