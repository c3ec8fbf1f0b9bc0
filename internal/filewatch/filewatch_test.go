// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/internal/testca"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// realDir is a directory whose path has no link in it.
func realDir(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// TestTrails: where something can happen to a file, by way of all links.
func TestTrails(t *testing.T) {
	dir := realDir(t)
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	for _, d := range []string{"plain", "volume/..2026", "links", "far/away"} {
		must(t, os.MkdirAll(at(d), 0o700))
	}
	for _, f := range []string{"plain/a", "volume/..2026/tls.crt", "far/away/b"} {
		must(t, os.WriteFile(at(f), nil, 0o600))
	}
	for link, to := range map[string]string{
		"volume/..data": "..2026", "volume/tls.crt": "..data/tls.crt",
		"links/up": "../far/away", "links/abs": at("far"), "links/self": "self", "links/dangling": "nothing/here",
	} {
		must(t, os.Symlink(to, at(link)))
	}
	for path, want := range map[string][]string{
		"plain/a":          {at("plain")},
		"volume/tls.crt":   {at("volume"), at("volume/..2026")},
		"links/up/b":       {at("far/away"), at("links")},
		"links/abs/away/b": {at("far/away"), at("links")},
		"links/self":       {at("links")},
		"links/dangling":   {at("links")},
		"plain/b":          {at("plain")},
		"no/such/file":     {dir},
		"plain/a/b":        {at("plain/a")}, // not a directory; nothing happens in it
	} {
		dirs, _ := trails([]string{at(path)})
		if diff := cmp.Diff(want, dirs); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestWait: what happens to other files in the same directory wakes
// nobody, and a poll does.
func TestWait(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := realDir(t)
	path := filepath.Join(dir, "a")
	must(t, os.WriteFile(path, nil, 0o600))
	w := New(zap.NewNop())
	defer w.Close()
	w.Follow([]string{path})
	must(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o600))
	events, _ := w.Events()
	select {
	case ev := <-events:
		if w.Matters(ev) {
			t.Errorf("%v matters", ev)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no event of the directory")
	}
	if !w.Wait(t.Context(), time.Millisecond, nil) {
		t.Error("polling ends the waiting for good")
	}
	hurry := make(chan struct{}, 1)
	hurry <- struct{}{}
	if !w.Wait(t.Context(), time.Hour, hurry) {
		t.Error("hurry ends the waiting for good")
	}
	must(t, os.WriteFile(path, []byte("x"), 0o600))
	if !w.Wait(t.Context(), time.Hour, nil) {
		t.Error("an event ends the waiting for good")
	}
}

// TestBlind: a directory that can't be watched is told of once.
func TestBlind(t *testing.T) {
	if testca.AsNobody(t) { // root can watch everything
		return
	}
	dir := realDir(t)
	closed := filepath.Join(dir, "closed")
	must(t, os.Mkdir(closed, 0o300))
	core, logs := observer.New(zapcore.WarnLevel)
	w := New(zap.New(core))
	defer w.Close()
	for range 3 {
		w.Follow([]string{filepath.Join(closed, "a")})
	}
	if logs.Len() != 1 {
		t.Errorf("log: %v", logs.All())
	}
}
