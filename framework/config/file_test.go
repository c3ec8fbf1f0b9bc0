// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What has no size is read up to the bound and no further.
func TestFileWithoutEnd(t *testing.T) {
	_, err := input{args: []string{"--config", "/dev/zero"}}.load(t)
	want := `read configuration file "/dev/zero": over 4194304 bytes are too long for a configuration`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	long := filepath.Join(t.TempDir(), "tlsd.yaml")
	if err := os.WriteFile(long, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = input{args: []string{"--config", long}}.load(t)
	if err == nil || !strings.Contains(err.Error(), "too long for a configuration") {
		t.Errorf("error %v", err)
	}
}

// A key may hold what a terminal would obey, or the beginning of another line.
func TestKeysInMessagesArePrintable(t *testing.T) {
	tests := []struct{ name, key, want string }{
		{"escape", `"\e[31mred"`, `line 1: \x1b[31mred: unknown key`},
		{"line_end", `"a\nb"`, `line 1: a\nb: unknown key`},
		{"direction", "\"\u202ea\"", `line 1: \u202ea: unknown key`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := input{file: tt.key + ": 1\n"}.load(t)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %s", err, tt.want)
			}
		})
	}
}
