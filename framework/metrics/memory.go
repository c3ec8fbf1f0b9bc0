// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"os"
)

// residentMemory returns the resident memory of a process in bytes, as Linux
// tells everybody (proc(5), statm): of a process that is not dumpable too.
func residentMemory(pid int) (uint64, bool) {
	if pid <= 0 {
		return 0, false
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	var size, resident uint64 // pages
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return 0, false
	}
	return resident * uint64(os.Getpagesize()), true
}
