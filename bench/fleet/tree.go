// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// descend returns pid, its children, theirs and so on.
func descend(pid int) []int {
	pids := []int{pid}
	for _, child := range childrenOf(pid) {
		pids = append(pids, descend(child)...)
	}
	return pids
}

// childrenOf returns the direct children of a process, of all its threads.
func childrenOf(pid int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // a thread that has ended has none
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
