// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestConsole(t *testing.T) {
	tests := []struct {
		name, logger string
		fields       []zap.Field
		want         string
	}{
		{"no-field", "server", nil, "INFO  server: it happened"},
		{"no-logger", "", nil, "INFO  it happened"},
		{"plain", "server", []zap.Field{zap.Int("n", 2), zap.Bool("ok", true), zap.Duration("drain", 30*time.Second)},
			"INFO  server: it happened  n=2 ok=true drain=30s"},
		{"reason-and-error-first", "a", []zap.Field{zap.String("path", "/x"), zap.Error(errors.New("open: denied")), zap.String(FieldReason, "it is old")},
			"INFO  a: it happened: it is old: open: denied  path=/x"},
		{"alias-first", KeyManager, []zap.Field{zap.String(FieldTier, "pkix"), zap.Int(FieldBuilder, 0), zap.String("key", "P-256"), zap.String(FieldAlias, "web")},
			"INFO  keymanager: it happened  alias=web tier=pkix builder_index=0 key=P-256"},
		{"second-keystore", KeyManager, []zap.Field{zap.Int(FieldBuilder, 1)}, "INFO  keymanager: it happened  builder_index=1"},
		{"tier-elsewhere", "plugin", []zap.Field{zap.String(FieldTier, "pkix")}, "INFO  plugin: it happened  tier=pkix"},
		{"empty", KeyManager, []zap.Field{zap.String(FieldServerName, ""), zap.String(FieldAlias, "")}, "INFO  keymanager: it happened"},
		{"quotes", "", []zap.Field{zap.String("a", "x y"), zap.String("b", `say "x"`), zap.String("c", `it's "x"`), zap.String("d", "a=b")},
			`INFO  it happened  a="x y" b='say "x"' c="it's \"x\"" d="a=b"`},
		{"one-line", "", []zap.Field{zap.String("a", "x\ny\x1b[2J"), zap.String(FieldReason, "x\ny")}, `INFO  it happened: x\ny  a="x\ny\x1b[2J"`},
		{"nested", "", []zap.Field{zap.Strings("names", []string{"a", "b"}), zap.Dict("d", zap.Int("n", 1))}, `INFO  it happened  names='["a","b"]' d='{"n":1}'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := encoded(t, newConsole(false), zapcore.InfoLevel, tt.logger, tt.fields); got != tt.want+"\n" {
				t.Errorf("got  %swant %s", got, tt.want)
			}
		})
	}
}

// encoded returns a line without its time, half of the fields given by With.
func encoded(t *testing.T, enc zapcore.Encoder, level zapcore.Level, logger string, fields []zap.Field) string {
	t.Helper()
	var out bytes.Buffer
	core := zapcore.NewCore(enc, zapcore.AddSync(&out), zapcore.DebugLevel)
	half := len(fields) / 2
	zap.New(core).Named(logger).With(fields[:half]...).Log(level, "it happened", fields[half:]...)
	if _, err := time.Parse("15:04:05.000 ", out.String()[:13]); err != nil {
		t.Error(err)
	}
	return out.String()[13:]
}

func TestConsoleColour(t *testing.T) {
	want := map[zapcore.Level]string{
		zapcore.DebugLevel: "\x1b[2mDEBUG\x1b[0m it happened  \x1b[2mn=\x1b[0m1\n",
		zapcore.InfoLevel:  "INFO  it happened  \x1b[2mn=\x1b[0m1\n",
		zapcore.WarnLevel:  "\x1b[33mWARN \x1b[0m it happened  \x1b[2mn=\x1b[0m1\n",
		zapcore.ErrorLevel: "\x1b[31mERROR\x1b[0m it happened  \x1b[2mn=\x1b[0m1\n",
	}
	for level, want := range want {
		if got := encoded(t, newConsole(true), level, "", []zap.Field{zap.Int("n", 1)}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	t.Setenv("TERM", "xterm")
	var file bytes.Buffer
	l, err := New(Config{Format: FormatConsole, Output: zapcore.AddSync(&file)})
	if err != nil {
		t.Fatal(err)
	}
	l.Zap().Error("it happened")
	if bytes.ContainsRune(file.Bytes(), '\x1b') {
		t.Errorf("colour without a terminal: %q", file.String())
	}
}
