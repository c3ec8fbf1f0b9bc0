// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// restartKeys are the keys whose change takes a restart; a reload takes all the
// others.
func restartKeys() []string {
	return []string{"log.format", "metrics.listen", "admin.listen", "admin.pprof", "allow_user"}
}

// Changed returns the keys whose values differ between two configurations, and
// those of them that take a restart. An item of a list that only one of them has
// counts as one key.
func Changed(old, now *Effective) (keys, restart []string) {
	values := func(e *Effective) map[string]string {
		m := make(map[string]string, len(e.Values))
		for _, v := range e.Values {
			m[v.Key] = v.Value
		}
		return m
	}
	before, after := values(old), values(now)
	for key, v := range after {
		if was, there := before[key]; !there {
			keys = append(keys, item(key))
		} else if was != v {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, there := after[key]; !there {
			keys = append(keys, item(key))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, key := range keys {
		if slices.Contains(restartKeys(), key) {
			restart = append(restart, key)
		}
	}
	return keys, restart
}

// item returns the item of a list that a key is of, or the key.
func item(key string) string {
	if i := strings.LastIndexByte(key, ']'); i >= 0 {
		return key[:i+1]
	}
	return key
}
