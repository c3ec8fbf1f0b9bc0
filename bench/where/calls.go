// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadCalls reads what "strace -c" writes: how often each system call was made.
func ReadCalls(r io.Reader) (map[string]int, error) {
	calls := map[string]int{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // % time, seconds, µs a call, calls, perhaps errors, name
		if len(fields) < 5 || fields[len(fields)-1] == "total" {
			continue
		}
		if _, err := strconv.ParseFloat(fields[0], 64); err != nil {
			continue // a line of the head
		}
		n, err := strconv.Atoi(fields[3])
		if err != nil {
			return nil, fmt.Errorf("read system calls: %q", lines.Text())
		}
		calls[fields[len(fields)-1]] += n
	}
	return calls, lines.Err()
}
