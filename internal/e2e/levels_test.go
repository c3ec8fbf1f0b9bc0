// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Of levels that were set for a time, those that a reload configures meanwhile stay.
func TestConfiguredLevelsStay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tlsd.yaml")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("log: {level: info}\n")
	w := startWatched(t, "--config", file)
	if code, text := w.order("/log?for=4s", "-X", "PUT", "-d", `{"server": "debug", "access": "debug"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	configure("log: {level: info, debug: [server]}\n")
	if code, text := w.order("/reload", "-X", "POST"); code != 200 {
		t.Fatalf("reload: %d %s", code, text)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		_, text := w.order("/log")
		if !strings.Contains(text, `"access"`) {
			break // it went back
		}
		if time.Now().After(end) {
			t.Fatalf("access is at debug for ever: %s", text)
		}
	}
	time.Sleep(200 * time.Millisecond) // the other would go with it
	if _, text := w.order("/log"); !strings.Contains(text, `"server": "debug"`) {
		t.Errorf("the level that is configured went: %s", text)
	}
}
