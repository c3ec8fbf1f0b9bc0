// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads a duration that is more than zero: a setting that is left
// out has its default, and none of them means "for ever".
func parseDuration(s string) (time.Duration, error) {
	d, err := parseSpan(s)
	if err == nil && d == 0 {
		err = errors.New("must be more than zero")
	}
	return time.Duration(d), err
}

// parseSpan reads a duration as time.ParseDuration does, and whole days (21d).
// Less than zero is refused.
func parseSpan(s string) (span, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint16
		n, err = parseDays(days)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no duration; write a number and a unit (ms, s, m, h, d), as in 10s", s)
	}
	if d < 0 {
		return 0, errors.New("must not be less than zero")
	}
	return span(d), nil
}

func parseDays(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err
}

// formatDuration writes a duration as a configuration file has it.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
