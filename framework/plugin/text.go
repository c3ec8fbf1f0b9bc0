// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"

	"github.com/tlsd/tlsd/logging"
)

// clean makes text that another process wrote fit for an error or a terminal:
// what doesn't print is escaped, and what exceeds limit bytes is cut off, which
// "…" shows.
func clean(s string, limit int) string {
	if len(s) <= limit {
		return logging.Printable(s)
	}
	return logging.Printable(strings.ToValidUTF8(s[:limit], "")) + "…"
}

// cleanLines is clean for text whose line ends are to stay.
func cleanLines(s string, limit int) string {
	lines := strings.Split(s[:min(len(s), limit)], "\n")
	for i, l := range lines {
		lines[i] = clean(l, limit)
	}
	return strings.Join(lines, "\n")
}
