// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock reads the clock of a process's CPU time, in nanoseconds and with the
// threads that have ended: finer than the ticks of /proc/PID/stat. The clock's
// number is what clock_getcpuclockid(3) makes of the process id.
func cpuClock(pid int) (time.Duration, error) {
	const cpuSched = 2
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|cpuSched), &ts)
	return time.Duration(ts.Nano()), err
}
