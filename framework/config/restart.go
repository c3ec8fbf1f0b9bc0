// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// restartKeys are the keys whose change takes a restart; a reload takes all the
// others.
func restartKeys() []string {
	return []string{"log.format", "metrics.listen", "admin.listen", "admin.pprof"}
}

// Changed returns the keys whose values differ between two configurations, and
// those of them that take a restart.
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
		if was, there := before[key]; !there || was != v {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, there := after[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if slices.Contains(restartKeys(), key) {
			restart = append(restart, key)
		}
	}
	return keys, restart
}
