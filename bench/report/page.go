// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
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

// Markers around what runs write into a page.
const (
	beginMark = "<!-- bench: begin; written by make bench -->\n"
	endMark   = "<!-- bench: end -->\n"
)

// WritePage replaces what is between the marks in a page.
func WritePage(path, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(page, []byte(beginMark))
	_, after, ends := bytes.Cut(rest, []byte(endMark))
	if !ok || !ends {
		return fmt.Errorf("write page %q: no place is marked by %q and %q", path, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	var b bytes.Buffer
	for _, part := range [][]byte{before, []byte(beginMark), []byte(text), []byte(endMark), after} {
		b.Write(part)
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
