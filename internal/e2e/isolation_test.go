// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/sandbox"
	"github.com/tlsd/tlsd/internal/testca"
)

// landlocked is what a report says of Landlock on this machine.
func landlocked(t *testing.T) string {
	t.Helper()
	if sandbox.ABI() == 0 {
		t.Log("NOT CHECKED: this kernel has no Landlock; what is said of that is")
		return "no: this kernel has no Landlock"
	}
	return fmt.Sprintf("abi %d", sandbox.ABI())
}

// One line at the start says what is in force of a child.
func TestIsolationLine(t *testing.T) {
	t.Parallel()
	s := storeWith(t, testca.SelfSigned(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}))
	d := start(t, s.args()...)
	var got map[string]string
	if err := json.Unmarshal([]byte(d.awaitLines(1, `"msg":"isolation"`)[0]), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"level": "info", "process": "child", "dumpable": "no", "core_dumps": "no", "no_new_privs": "yes",
		"users": fmt.Sprintf("(%d), key process", os.Getuid()), "landlock": landlocked(t),
		"socket": "in drwx------", "keystore": "the front can open " + s.path,
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// Required isolation that isn't there is exit 2, and each thing that is missing
// is named with what to do.
func TestIsolationRequired(t *testing.T) {
	t.Parallel()
	s := storeWith(t, testca.SelfSigned(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}))
	config := writeFile(t, filepath.Join(t.TempDir(), "tlsd.yaml"), []byte("isolation: require\n"))
	out, err := command(t, bin("tlsd"), append([]string{"--config", config, "--listen", freeAddr(t)}, s.args()...)...)
	if exitCode(err) != 2 {
		t.Errorf("exit status %d", exitCode(err))
	}
	for _, want := range []string{
		"tlsd: isolation is required, but users: front", "run the key process as a user of its own, by tlsd keymanager serve",
		"tlsd: isolation is required, but keystore: the front can open " + s.path,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Two users are what it takes.
func TestIsolationRequiredAndThere(t *testing.T) {
	testca.Root(t, "to be two users")
	t.Parallel()
	u := newTwoUsers(t)
	config := filepath.Join(u.dir, "tlsd.yaml")
	u.must(os.WriteFile(config, []byte("isolation: require\n"), 0o644))
	u.startKeys()
	if !strings.HasPrefix(landlocked(t), "abi") {
		out, err := as(frontUser, bin("tlsd"), "check", "--config", config, "--keymanager", "unix:"+u.socket).CombinedOutput()
		if exitCode(err) != 2 || !strings.Contains(string(out), "isolation is required, but landlock: no: this kernel has no Landlock") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	u.startFront("--config", config)
	u.wantServed("first")
	u.end(u.front)
}

// check has a section for people and one in JSON.
func TestIsolationInCheck(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	u.startKeys()
	args := []string{"check", "--keymanager", "unix:" + u.socket}
	text, err := as(frontUser, bin("tlsd"), args...).CombinedOutput()
	for _, want := range []string{"\nisolation\n", "endpoint", "front_landlock", "all is well"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %q in the text: %v\n%s", want, err, text)
		}
	}
	out, err := as(frontUser, bin("tlsd"), append(args, "--json")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Isolation []struct {
			Name, Value, Remedy string
			OK                  bool
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range report.Isolation {
		found[f.Name] = f.Value
		if f.OK == (f.Remedy != "") {
			t.Errorf("%+v", f)
		}
	}
	for name, want := range map[string]string{"process": "endpoint", "landlock": landlocked(t), "front_landlock": landlocked(t), "socket": "Srw-rw---- in drwxr-x---"} {
		if !strings.Contains(found[name], want) {
			t.Errorf("%s is %q, want %q", name, found[name], want)
		}
	}
}
