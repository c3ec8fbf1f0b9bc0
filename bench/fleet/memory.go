// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Memory is memory in bytes that is a process's own and in use, not that of files
// that it has mapped: of a server's first process, and of those that it has
// started.
type Memory struct{ First, Others int64 }

// Memory returns what the server uses now.
func (s *Server) Memory() (Memory, error) {
	var m Memory
	for i, pid := range s.PIDs() {
		n, err := anonymous(pid)
		if err != nil {
			return Memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		if i == 0 {
			m.First = n
		} else {
			m.Others += n
		}
	}
	return m, nil
}

// anonymous reads RssAnon of a process, which has it in kB.
func anonymous(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kB << 10, err
		}
	}
	return 0, errors.New("no RssAnon in its status")
}

// Reload has the server read what it serves anew.
func (s *Server) Reload() error { return s.cmd.Process.Signal(syscall.SIGHUP) }
