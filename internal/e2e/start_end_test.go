// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An end that was asked for is no failure: nothing of it is a warning.
func TestEndWarnsOfNothing(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.stop()
	if log := d.log.String(); !strings.Contains(log, `"ending"`) || strings.Contains(log, "accept failed") {
		t.Errorf("%s", log)
	}
}

// Who changes the user in a directory that the other can't read, or removes the
// directory that he is in, is told what to do.
func TestWorkingDirectoryGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	script := `mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" --listen "$3"`
	out, err := exec.Command("sh", "-c", script, "sh", dir, bin("tlsd"), freeAddr(t)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "start tlsd in another, such as /") {
		t.Errorf("%v\n%s", err, out)
	}
}
