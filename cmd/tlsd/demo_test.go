// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
)

// A name that no certificate can hold, such as some machines have, is left out
// and keeps tlsd from nothing.
func TestDemoNames(t *testing.T) {
	var eff config.Effective
	for _, listen := range []string{"web.test:1", "bü.test:1", "[fe80::1%eth0]:1", "0.0.0.0:1", "192.0.2.1:1", "unix:/run/x:1"} {
		eff.Listeners = append(eff.Listeners, framework.Listener{Listen: listen})
	}
	names := demoNames(&eff)
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "web.test": true, "192.0.2.1": true,
		"bü.test": false, "fe80::1%eth0": false, "0.0.0.0": false, "unix": false, "unix:/run/x": false,
	} {
		if slices.Contains(names, name) != want {
			t.Errorf("%q in %q is not %v", name, names, want)
		}
	}
}
