// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestUnits has systemd read the units, and judge how much each service may do:
// from 0, nothing, to 10. What remains of tlsd's is the network, the ports below
// 1024, and that it says itself what it does.
func TestUnits(t *testing.T) {
	analyze := testca.Tool(t, "systemd-analyze")
	dir := t.TempDir()
	var names, services []string
	for _, pattern := range []string{"*.service", "*.socket"} {
		found, _ := filepath.Glob(filepath.Join("../../deploy", pattern))
		for _, from := range found {
			unit, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			here := filepath.Join(dir, filepath.Base(from))
			// systemd wants to see the executable.
			writeFile(t, here, []byte(strings.ReplaceAll(string(unit), "/usr/local/bin/tlsd", bin("tlsd"))))
			names = append(names, here)
			if strings.HasSuffix(here, ".service") {
				services = append(services, here)
			}
		}
	}
	if out, err := command(t, analyze, append([]string{"verify", "--man=no"}, names...)...); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("verify: %v\n%s", err, out)
	}
	for _, service := range services {
		out, err := command(t, analyze, "security", "--offline=true", "--no-pager", "--threshold=20", service)
		if err != nil {
			t.Errorf("%s: exposed by more than 2.0: %v\n%s", filepath.Base(service), err, out)
		}
	}
}
