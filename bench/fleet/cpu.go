// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"
)

// CPU is CPU time, user and system: of a server's first process, and of those
// that it has started.
type CPU struct{ First, Others time.Duration }

// Total returns the CPU time of all processes together.
func (c CPU) Total() time.Duration { return c.First + c.Others }

// Sub returns what was spent since before.
func (c CPU) Sub(before CPU) CPU { return CPU{c.First - before.First, c.Others - before.Others} }

// CPU returns what the server has used so far.
func (s *Server) CPU() (CPU, error) {
	var c CPU
	for i, pid := range s.PIDs() {
		d, err := CPUOf(pid)
		if err != nil {
			return CPU{}, err
		}
		if i == 0 {
			c.First = d
		} else {
			c.Others += d
		}
	}
	return c, nil
}

// CPUOf returns the CPU time that one process has used so far, user and system.
func CPUOf(pid int) (time.Duration, error) {
	d, err := cpuClock(pid)
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return d, nil
}
