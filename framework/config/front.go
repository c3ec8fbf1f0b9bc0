// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
)

// checkFront refuses, beside a key manager that is an endpoint at path, what is
// the endpoint's to know: here it would be believed to be in force.
func (d *draft) checkFront(path string) error {
	if path == "" {
		return d.wrong("keymanager", "%q has no path; write unix:PATH", "unix:")
	}
	var given []string
	for _, v := range d.values() {
		switch {
		case v.Origin == OriginDefault:
		case ofChild(v.Key):
			return d.wrong(v.Key, "has no use with an endpoint; leave it out")
		case ofEndpoint(v.Key):
			given = append(given, fmt.Sprintf("%s (%s)", v.Key, v.Origin))
		}
	}
	for _, from := range []string{d.passwords.from, d.keyPasswords.from, d.storeType.from, d.certChecking.from} {
		if from != "" {
			given = append(given, from)
		}
	}
	if d.demo {
		given = append(given, "flag --demo")
	}
	if len(given) > 0 {
		slices.Sort(given)
		return fmt.Errorf("beside the key manager \"unix:%s\" these are the endpoint's: %s; give them to tlsd keymanager serve and leave them out here",
			path, strings.Join(slices.Compact(given), ", "))
	}
	return nil
}

// ofChild reports whether a key of a file is about key processes that tlsd starts
// itself, and so nothing to an endpoint nor to its fronts.
func ofChild(key string) bool {
	list, _, _ := strings.Cut(key, "[")
	return list == "plugins" || list == "run_dir"
}

// ofEndpoint reports whether a key of a file is one that an endpoint has for its
// fronts.
func ofEndpoint(key string) bool {
	for _, k := range []string{"keystores", "constraints", "default_alias", "jdk_compat", "expiry_warning", "reload_poll", "keystore_limits"} {
		if key == k || strings.HasPrefix(key, k+".") || strings.HasPrefix(key, k+"[") {
			return true
		}
	}
	return strings.Contains(key, "client_ca_password") || strings.HasSuffix(key, "client_ca_type")
}
