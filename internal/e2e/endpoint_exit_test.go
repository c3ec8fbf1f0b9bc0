// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An endpoint that can't have its socket says by its exit status whether trying
// again makes sense.
func TestFaultEndpointHasNoSocket(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	u.startKeys()
	file := filepath.Join(u.dir, "run", "file")
	u.must(os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		socket string
		code   int
		want   string
	}{
		"served":    {u.socket, 1, "another process serves it; end that one first"},
		"directory": {filepath.Join(u.dir, "not", "there", "km.sock"), 1, "make its directory: no such file or directory"},
		"file":      {file, 2, "there is a file that is no socket"},
		"long":      {filepath.Join(u.dir, "run", strings.Repeat("a", 120)), 2, "choose a shorter one"},
	} {
		out, err := as(keysUser, bin("tlsd"), "keymanager", "serve", "--keystore", u.keystore, "--listen", "unix:"+tc.socket,
			"--keystore-password-file", filepath.Join(filepath.Dir(u.keystore), "pass"), "--allow-user", fmt.Sprint(admitted())).CombinedOutput()
		if exitCode(err) != tc.code || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v, want exit status %d\n%s", name, err, tc.code, out)
		}
	}
	u.end(u.keys)
}
