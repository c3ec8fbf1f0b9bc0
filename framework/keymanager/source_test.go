// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPasswordSpellings(t *testing.T) {
	tests := []struct {
		name, content string
		want          []string
	}{
		{"plain", "changeit", []string{"changeit"}},
		{"lf", "changeit\n", []string{"changeit", "changeit\n"}},
		{"crlf", "changeit\r\n", []string{"changeit", "changeit\r\n"}},
		{"one_of_two", "changeit\n\n", []string{"changeit\n", "changeit\n\n"}},
		{"lone_cr_stays", "changeit\r", []string{"changeit\r"}},
		{"spaces_stay", " change it ", []string{" change it "}},
		{"byte_order_mark", "\xef\xbb\xbfpässwörd€\n", []string{"pässwörd€", "pässwörd€\n"}},
		{"empty", "", []string{""}},
		{"line_end_only", "\n", []string{"", "\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := PasswordRef{File: writeFile(t, tt.content)}.Read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, spellings(got)); diff != "" {
				t.Errorf("spellings (-want +got):\n%s", diff)
			}
		})
	}
}

func spellings(passwords [][]byte) (out []string) {
	for _, p := range passwords {
		out = append(out, string(p))
	}
	return out
}

func TestSpellingsDoNotShareMemory(t *testing.T) {
	got, err := PasswordRef{File: writeFile(t, "changeit\n")}.Read()
	if err != nil {
		t.Fatal(err)
	}
	clear(got[0])
	if string(got[1]) != "changeit\n" {
		t.Error("wiping one spelling changes the other")
	}
}

func TestNoPasswordIsNotAnEmptyOne(t *testing.T) {
	none, err := PasswordRef{}.Read()
	if err != nil || none != nil {
		t.Errorf("no password = %q, %v", none, err)
	}
	empty := Secret("")
	got, err := PasswordRef{Value: &empty}.Read()
	if err != nil || len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("empty password = %q, %v", got, err)
	}
}

func TestPasswordFileErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	dir := t.TempDir()
	long := writeFile(t, strings.Repeat("x", maxPassword+1))
	tests := []struct{ name, path, want string }{
		{"missing", missing, fmt.Sprintf("read password file %q: no such file or directory", missing)},
		{"directory", dir, fmt.Sprintf("read password file %q: is a directory", dir)},
		{"too_long", long, fmt.Sprintf("read password file %q: over 65536 bytes are too long for a password; is it the keystore?", long)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := PasswordRef{File: tt.path}.Read()
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// A reload must not wait for somebody to write into a pipe; but what a shell
// passes as a descriptor is read.
func TestPasswordFromPipe(t *testing.T) {
	named := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(named, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := PasswordRef{File: named}.Read()
	want := fmt.Sprintf("read password file %q: is a named pipe, which can't be read again on reload: copy it to a file, or pass it as /dev/stdin", named)
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString("changeit")
		w.Close()
	}()
	got, err := PasswordRef{File: fmt.Sprintf("/dev/fd/%d", r.Fd())}.Read()
	if err != nil || len(got) != 1 || string(got[0]) != "changeit" {
		t.Errorf("descriptor: %d spellings, %v", len(got), err)
	}
}

func TestKeyPasswordFallsBack(t *testing.T) {
	secret := func(s string) PasswordRef { v := Secret(s); return PasswordRef{Value: &v} }
	store := Source{Store: secret("store")}
	keys := Source{Store: secret("store"), Key: secret("keys")}
	own := Source{Store: secret("store"), Key: secret("keys"), Keys: []KeyPassword{{"Mine", secret("mine")}}}
	tests := []struct {
		name   string
		source Source
		alias  string
		want   []string
	}{
		{"store", store, "a", []string{"store"}},
		{"keys", keys, "a", []string{"keys"}},
		{"own_without_case", own, "mINE", []string{"mine"}},
		{"other", own, "a", []string{"keys"}},
		{"none", Source{}, "a", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.source.KeyPassword(tt.alias)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, spellings(got)); diff != "" {
				t.Errorf("password (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	s := Secret("hunter2")
	ref := PasswordRef{Value: &s}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%08b", "%e"} {
		for _, v := range []any{s, &s, []Secret{s}, map[string]Secret{"a": s}, struct{ S Secret }{s}, ref} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "hunter2") || strings.Contains(got, "68756e74657232") {
				t.Errorf("%s of %T shows the password", verb, v)
			}
		}
	}
	b, err := json.Marshal(ref)
	if err != nil || strings.Contains(string(b), "hunter2") {
		t.Errorf("JSON shows the password (%v)", err)
	}
}
