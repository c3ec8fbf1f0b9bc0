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
// from 0, nothing, to 10. What remains of a front's is the network, the ports
// below 1024, and that it says itself what it does.
func TestUnits(t *testing.T) {
	analyze := testca.Tool(t, "systemd-analyze")
	for _, dir := range []string{"../../deploy", "../../deploy/endpoint"} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			units := copyUnits(t, dir)
			if out, err := command(t, analyze, append([]string{"verify", "--man=no"}, units...)...); err != nil || strings.TrimSpace(out) != "" {
				t.Errorf("verify: %v\n%s", err, out)
			}
			for _, unit := range units {
				if filepath.Ext(unit) != ".service" {
					continue
				}
				if out, err := command(t, analyze, "security", "--offline=true", "--no-pager", "--threshold=20", unit); err != nil {
					t.Errorf("%s: exposed by more than 2.0: %v\n%s", filepath.Base(unit), err, out)
				}
			}
		})
	}
}

// copyUnits copies the units of a directory, with an executable that is there:
// systemd wants to see it.
func copyUnits(t *testing.T, dir string) (units []string) {
	t.Helper()
	to := t.TempDir()
	for _, pattern := range []string{"*.service", "*.socket"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, from := range found {
			unit, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(unit), "/usr/local/bin/tlsd", bin("tlsd"))
			units = append(units, writeFile(t, filepath.Join(to, filepath.Base(from)), []byte(text)))
		}
	}
	if len(units) == 0 {
		t.Fatalf("no units in %s", dir)
	}
	return units
}
