// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text that another process wrote fit for a log line or a terminal:
// control characters, line ends, characters that turn the writing direction and
// bytes that are no UTF-8 are shown as escapes, and what exceeds limit bytes of
// the input is cut off, which "…" shows.
func clean(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
	}
	if !cut && isClean(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isHarmless(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if cut {
		b.WriteString("…")
	}
	return b.String()
}

func isClean(s string) bool {
	for i, r := range s {
		if !isHarmless(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// isHarmless admits what prints; it excludes unicode.Cc and, with Cf, the
// bidirectional overrides.
func isHarmless(r rune) bool { return r == utf8.RuneError || unicode.IsPrint(r) }
