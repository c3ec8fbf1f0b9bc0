// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestFaultUpgradeTakesBackListeners: listeners that a reload gave up, and that the
// new process's configuration has again, serve there. Their sockets are dead.
func TestFaultUpgradeTakesBackListeners(t *testing.T) {
	t.Parallel()
	u := startUpgradable(t)
	config, err := os.ReadFile(u.config)
	if err != nil {
		t.Fatal(err)
	}
	var fewer []string
	for line := range strings.Lines(string(config)) {
		if !strings.Contains(line, u.web) && !strings.Contains(line, u.file) {
			fewer = append(fewer, line)
		}
	}
	writeFile(t, u.config, []byte(strings.Join(fewer, "")))
	u.signal(u.pid(), syscall.SIGHUP)
	u.awaitLog(`"msg":"no longer listening"`, 2)
	writeFile(t, u.config, config)
	u.upgrade() // sooner than the old process looks at its configuration again
	if err := u.get("/"); err != nil {
		t.Error(err)
	}
	if err := u.getByFile(); err != nil {
		t.Error(err)
	}
}
