// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

func TestLogLevels(t *testing.T) {
	t.Parallel()
	levels := quietLevels(t)
	a := New(Config{Levels: levels})
	defer a.Close()
	a.Follow(&told{keys: openKeys(t)})
	c, addr := site(t, a.Private(), "")
	put := func(body string, want map[string]string) {
		t.Helper()
		code, text, _ := answer(t, c, "PUT", "http://"+addr+"/log", body)
		var got map[string]string
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 {
			t.Fatalf("%s: %d %s", body, code, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
		if diff := cmp.Diff(want, levels.Levels()); diff != "" {
			t.Errorf("%s: in force: %s", body, diff)
		}
	}
	put(`{"keymanager": "debug", "plugin.hsm": "warn"}`, map[string]string{"": "info", "keymanager": "debug", "plugin.hsm": "warn"})
	put(`{"": "error", "plugin.hsm": null}`, map[string]string{"": "error", "keymanager": "debug"})
	put(`{"access": "debug"}`, map[string]string{"": "error", "keymanager": "debug", "access": "debug"})
	put(`{"access": null}`, map[string]string{"": "error", "keymanager": "debug"})
	for body, want := range map[string]string{
		`{"keymanger": "debug"}`: `there is no logger "keymanger"; there are keymanager, server,`,
		`{"keymanager": "loud"}`: `logger "keymanager": log level "loud": unknown; known are debug,`,
		`{"keymanager": ""}`:     `the level is empty; null takes it away`,
		`{"": null}`:             `can't be taken away`,
		`{"keymanager": 1}`:      `write a JSON object as in {"keymanager": "debug"}`,
		`{"server": "info"} x`:   `write a JSON object as in {"keymanager": "debug"}`,
		`keymanager=debug`:       `write a JSON object as in {"keymanager": "debug"}`,
		`{}`:                     `the body names no levels`,
		`{"a": "` + strings.Repeat("x", 2*maxLevels) + `"}`: `the body names no levels`,
	} {
		if code, text, _ := answer(t, c, "PUT", "http://"+addr+"/log", body); code != 400 || !strings.Contains(text, want) {
			t.Errorf("%.40s: got %d %q, want %q", body, code, text, want)
		}
	}
	for _, last := range []string{"10", "-1m", "25h"} {
		if code, text, _ := answer(t, c, "PUT", "http://"+addr+"/log?for="+last, `{"server": "debug"}`); code != 400 || !strings.Contains(text, "write a duration up to 24h") {
			t.Errorf("for=%s: got %d %q", last, code, text)
		}
	}
	put(`{"": "info"}`, map[string]string{"": "info", "keymanager": "debug"}) // nothing of it counted
}

// memory is levels as a toggle sets them.
type memory struct {
	mu     sync.Mutex
	levels map[string]string
	err    error
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) set(_ context.Context, levels map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for name, level := range levels {
		if m.levels[name] = level; level == "" {
			delete(m.levels, name)
		}
	}
	return nil
}

func (m *memory) now() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.levels)
}

func TestLevelsForATimeGoBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		puts []string // LEVEL DURATION, a minute apart
		want []string // the level after each minute
	}{
		{"once", []string{"debug 90s"}, []string{"debug", "warn"}},
		{"longer", []string{"debug 90s", "debug 90s"}, []string{"debug", "debug", "warn"}},
		{"for_good_meanwhile", []string{"debug 90s", "error 0s"}, []string{"debug", "error", "error"}},
		{"other_level_meanwhile", []string{"debug 150s", "info 60s"}, []string{"debug", "warn", "warn"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{levels: map[string]string{"server": "warn"}}
				to := &toggle{set: m.set, now: m.now, log: zap.NewNop()}
				for i, want := range tt.want {
					if i < len(tt.puts) {
						level, last, _ := strings.Cut(tt.puts[i], " ")
						d, err := time.ParseDuration(last)
						if err != nil {
							t.Fatal(err)
						}
						if err := to.put(t.Context(), map[string]string{"server": level}, d); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if got := m.now()["server"]; got != want {
						t.Errorf("after %d minutes: %q, want %q", i+1, got, want)
					}
				}
			})
		})
	}
}

// What was configured meanwhile stays, and nothing else does.
func TestConfiguredLevelsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		levels := quietLevels(t)
		a := New(Config{Levels: levels})
		defer a.Close()
		if err := a.levels.put(t.Context(), map[string]string{"server": "debug", "access": "debug"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		configured := map[string]string{"server": "warn", "plugin": "error"}
		a.KeepLevels(configured)
		if err := levels.SetLevels(configured); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{"": "info", "server": "warn", "plugin": "error"}, levels.Levels()); diff != "" {
			t.Error(diff)
		}
	})
}

// What can't be set back is tried again; what is closed is left alone.
func TestLevelsGoBackLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{levels: map[string]string{}}
		to := &toggle{set: m.set, now: m.now, log: zap.NewNop()}
		if err := to.put(t.Context(), map[string]string{"server": "debug"}, time.Second); err != nil {
			t.Fatal(err)
		}
		m.fail(errors.New("the key process is gone"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		m.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if left := m.now(); len(left) > 0 {
			t.Errorf("levels are %v", left)
		}
		if err := to.put(t.Context(), map[string]string{"server": "debug"}, time.Second); err != nil {
			t.Fatal(err)
		}
		to.close()
		time.Sleep(time.Minute)
		if left := m.now(); left["server"] != "debug" {
			t.Errorf("levels are %v after close", left)
		}
	})
}
