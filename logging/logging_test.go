// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// newLogger returns a logger that writes to the buffer.
func newLogger(t testing.TB, c logging.Config) (*logging.Logger, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	c.Output = zapcore.AddSync(&out)
	l, err := logging.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, &out
}

// In zap's order, and the fields behind them.
func TestLineBeginsWithTheFourKeys(t *testing.T) {
	l, out := newLogger(t, logging.Config{})
	before := time.Now().Add(-time.Second)
	l.Zap().Named("config").Info("config loaded", zap.String("file", "tlsd.yaml"))
	line := out.String()
	at := -1
	for _, key := range []string{`{"level":"info"`, `"ts":`, `"logger":"config"`, `"msg":"config loaded"`, `"file":"tlsd.yaml"`} {
		i := strings.Index(line, key)
		if i <= at {
			t.Errorf("%s stands at %d, not after %d, in %s", key, i, at, line)
		}
		at = i
	}
	var parsed struct{ TS time.Time }
	if err := json.Unmarshal(out.Bytes(), &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.TS.Before(before) || parsed.TS.After(time.Now()) {
		t.Errorf("ts is %v", parsed.TS)
	}
	if n := strings.Count(line, "\n"); n != 1 {
		t.Errorf("%d line ends, want 1", n)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name string
		c    logging.Config
		want string
	}{
		{"level", logging.Config{Level: "loud"}, `log level "loud": unknown; known are debug, info, warn, error, off`},
		{"level-of-name", logging.Config{Levels: map[string]string{"tls": "2"}}, `logger "tls": log level "2": unknown; known are debug, info, warn, error, off`},
		{"format", logging.Config{Format: "xml"}, `log format "xml": unknown; known are json and console`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := logging.New(tt.c); err == nil || err.Error() != tt.want {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}

func TestNearestNameDecides(t *testing.T) {
	l, out := newLogger(t, logging.Config{Level: "warn", Levels: map[string]string{
		"plugin": "info", "plugin.pkix": "debug", "plugin.pkix.wire": "off",
	}})
	tests := []struct {
		logger string
		level  zapcore.Level
		want   bool
	}{
		{"", zap.InfoLevel, false},
		{"", zap.WarnLevel, true},
		{"server", zap.InfoLevel, false},
		{"plugin", zap.DebugLevel, false},
		{"plugin", zap.InfoLevel, true},
		{"plugin.sunx509", zap.InfoLevel, true},
		{"plugin.sunx509", zap.DebugLevel, false},
		{"plugin.pkix", zap.DebugLevel, true},
		{"plugin.pkix.cache.deep", zap.DebugLevel, true},
		{"plugin.pkix.wire", zap.ErrorLevel, false},
		{"plugins", zap.InfoLevel, false},
		{"pluginx.pkix", zap.InfoLevel, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s-%s", tt.logger, tt.level), func(t *testing.T) {
			out.Reset()
			log := l.Zap()
			if tt.logger != "" {
				log = log.Named(tt.logger)
			}
			log.With(zap.Int("n", 1)).Log(tt.level, "line")
			if got := out.Len() > 0; got != tt.want {
				t.Errorf("logged is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSetLevelsReachesLoggersInUse(t *testing.T) {
	l, out := newLogger(t, logging.Config{})
	log := l.Zap().Named("keymanager").With(zap.String(logging.FieldTier, "pkix"))
	log.Debug("one")
	set := func(m map[string]string) {
		t.Helper()
		if err := l.SetLevels(m); err != nil {
			t.Fatal(err)
		}
	}
	set(map[string]string{"keymanager": "debug"})
	log.Debug("two")
	set(map[string]string{"": "error"}) // keymanager keeps its own
	log.Debug("three")
	set(map[string]string{"keymanager": ""}) // and falls back
	log.Warn("four")
	var got []string
	for line := range strings.Lines(out.String()) {
		var e struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Msg)
	}
	if diff := cmp.Diff([]string{"two", "three"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"": "error"}, l.Levels()); diff != "" {
		t.Error(diff)
	}
}

func TestSetLevelsErrorChangesNothing(t *testing.T) {
	l, _ := newLogger(t, logging.Config{Levels: map[string]string{"tls": "off"}})
	before := l.Levels()
	if err := l.SetLevels(map[string]string{"a": "debug", "b": "chatty", "": "error"}); err == nil {
		t.Fatal("an unknown level was taken")
	}
	if diff := cmp.Diff(before, l.Levels()); diff != "" {
		t.Error(diff)
	}
}

func TestLevelsChangeWhileLogging(t *testing.T) {
	l, err := logging.New(logging.Config{Output: zapcore.AddSync(&discard{})})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			log := l.Zap().Named("keymanager")
			for range 500 {
				log.Debug("line")
			}
		})
		wg.Go(func() {
			for i := range 500 {
				if err := l.SetLevels(map[string]string{"keymanager": []string{"debug", "info"}[i%2]}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

type discard struct{ n int }

func (d *discard) Write(p []byte) (int, error) { d.n += len(p); return len(p), nil }

func TestLogKeyHasTheSameFieldsForSuccessAndFailure(t *testing.T) {
	l, out := newLogger(t, logging.Config{Level: "debug"})
	log := l.Zap().Named(logging.KeyManager).With(zap.String(logging.FieldTier, "pkix"))
	logging.LogKey(log, zap.DebugLevel, logging.MsgSigned, logging.KeyEvent{Builder: 1, Alias: "web", Generation: 7})
	logging.LogKey(log, zap.ErrorLevel, logging.MsgSignFailed, logging.KeyEvent{
		Builder: 1, Alias: "web", Generation: 7, Reason: "token gone", Err: errors.New("no token"),
	})
	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "ts")
		got = append(got, m)
	}
	want := []map[string]any{
		{"level": "debug", "logger": "keymanager", "msg": "signed", "tier": "pkix", "builder_index": 1.0, "alias": "web", "generation": 7.0},
		{"level": "error", "logger": "keymanager", "msg": "sign failed", "tier": "pkix", "builder_index": 1.0, "alias": "web", "generation": 7.0,
			"reason": "token gone", "error": "no token"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A password can reach a log call by mistake; it must not reach the log.
func TestSecretIsNeverWritten(t *testing.T) {
	const secret = "correct horse battery staple"
	s := keymanager.Secret(secret)
	ref := keymanager.PasswordRef{Value: &s}
	wrongVerbs := "%d %t" // in a variable, since vet would refuse them
	source := keymanager.Source{Paths: []string{"a.p12"}, Store: ref, Keys: []keymanager.KeyPassword{{Alias: "a", Password: ref}}}
	fields := map[string]zap.Field{
		"any":        zap.Any("v", s),
		"pointer":    zap.Any("v", &s),
		"slice":      zap.Any("v", []keymanager.Secret{s}),
		"map":        zap.Any("v", map[string]keymanager.Secret{"a": s}),
		"ref":        zap.Any("v", ref),
		"source":     zap.Any("v", source),
		"sources":    zap.Any("v", []keymanager.Source{source}),
		"stringer":   zap.Stringer("v", s),
		"reflect":    zap.Reflect("v", source),
		"sprint":     zap.String("v", fmt.Sprint(s, &s, []any{s})),
		"sprintf":    zap.String("v", fmt.Sprintf("%v %+v %#v %s %q", s, ref, s, s, s)),
		"error":      zap.Error(fmt.Errorf("open: %v", s)),
		"wrong-verb": zap.String("v", fmt.Sprintf(wrongVerbs, s, s)),
		"hex-verb":   zap.String("v", fmt.Sprintf("%x %X", s, s)),
	}
	for _, format := range []string{logging.FormatJSON, logging.FormatConsole} {
		for name, field := range fields {
			t.Run(format+"-"+name, func(t *testing.T) {
				l, out := newLogger(t, logging.Config{Format: format})
				l.Zap().Info("line", field)
				got := out.String()
				if strings.Contains(got, "horse") || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", "horse")) {
					t.Error("the secret is in the log")
				}
			})
		}
	}
}

func TestChangedLevels(t *testing.T) {
	t.Parallel()
	old := map[string]string{"": "info", "server": "debug", "a": "warn", "same": "warn"}
	next := map[string]string{"": "info", "a": "error", "b": "debug", "same": "warn"}
	want := map[string]string{"server": "", "a": "error", "b": "debug"}
	if diff := cmp.Diff(want, logging.ChangedLevels(old, next)); diff != "" {
		t.Error(diff)
	}
	l, _ := newLogger(t, logging.Config{Levels: old})
	if err := l.SetLevels(logging.ChangedLevels(old, next)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(next, l.Levels()); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkDisabled(b *testing.B) {
	levels := map[string]map[string]string{
		"nobody":  nil,
		"another": {"server": "debug"}, // so that the name has to be looked up
	}
	for name, m := range levels {
		b.Run(name, func(b *testing.B) {
			l, _ := newLogger(b, logging.Config{Levels: m})
			log := l.Zap().Named(logging.KeyManager)
			event := logging.KeyEvent{Alias: "web"}
			b.ReportAllocs()
			for b.Loop() {
				logging.LogKey(log, zap.DebugLevel, logging.MsgSigned, event)
			}
		})
	}
}
