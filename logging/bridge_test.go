// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/logging"
)

// What one process writes, the other writes again: the same line.
func TestBridgedLineIsTheSame(t *testing.T) {
	child, line := newLogger(t, logging.Config{Level: "debug"})
	front, out := newLogger(t, logging.Config{Level: "debug"})
	child.Zap().Named("keymanager").With(zap.String("tier", "pkix")).Debug("selected",
		zap.Int("builder_index", 1),
		zap.Uint64("generation", 1<<63+5),
		zap.Float64("ratio", 0.25),
		zap.Bool("reused", true),
		zap.Strings("names", []string{"a.example", "b\x1b.example"}),
		zap.Any("rules", map[string]any{"x": []int{1, 2}, "y": nil}),
		zap.String("stack", "main.main\n\tmain.go:1"),
		zap.Duration("took", 3*time.Millisecond))
	e, ok := logging.ParseLine(line.Bytes())
	if !ok {
		t.Fatalf("not understood: %s", line)
	}
	e.Emit(front.Zap())
	want := strings.ReplaceAll(line.String(), `b\u001b.example`, `b\\x1b.example`)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestParseLineRefuses(t *testing.T) {
	many := `{"msg":"x"`
	for i := range 65 {
		many += fmt.Sprintf(`,"k%d":1`, i)
	}
	tests := map[string]string{
		"empty":           ``,
		"text":            `panic: runtime error`,
		"array":           `["msg"]`,
		"string":          `"msg"`,
		"null":            `null`,
		"empty-object":    `{}`,
		"no-message":      `{"level":"info","logger":"a"}`,
		"foreign":         `{"@message":1}`,
		"message-number":  `{"msg":1}`,
		"message-null":    `{"msg":null}`,
		"level-number":    `{"msg":"x","level":1}`,
		"level-unknown":   `{"msg":"x","level":"trace"}`,
		"logger-object":   `{"msg":"x","logger":{}}`,
		"logger-escape":   `{"msg":"x","logger":"a\u001b[2J"}`,
		"logger-newline":  `{"msg":"x","logger":"a\nb"}`,
		"logger-long":     `{"msg":"x","logger":"` + strings.Repeat("a", 65) + `"}`,
		"cut":             `{"msg":"x","a":[1,2`,
		"cut-key":         `{"msg":"x","a`,
		"trailing":        `{"msg":"x"} {"msg":"y"}`,
		"trailing-text":   `{"msg":"x"}garbage`,
		"no-comma":        `{"msg":"x" "a":1}`,
		"too-deep":        `{"msg":"x","a":` + strings.Repeat("[", 10001) + `}`,
		"too-long":        `{"msg":"` + strings.Repeat("a", logging.MaxLine) + `"}`,
		"too-many-fields": many + `}`,
	}
	for name, line := range tests {
		t.Run(name, func(t *testing.T) {
			if e, ok := logging.ParseLine([]byte(line)); ok {
				t.Errorf("taken as %+v", e)
			}
		})
	}
}

func TestParseLineTames(t *testing.T) {
	tests := []struct {
		name, line, want string
	}{
		{"duplicate-keys", `{"msg":"a","msg":"b","n":1,"n":2,"level":"warn","level":"info"}`, `{"level":"warn","msg":"a","n":1}`},
		{"duplicate-by-escape", `{"msg":"a","\u006dsg":"b"}`, `{"level":"info","msg":"a"}`},
		{"huge-numbers", `{"msg":"a","n":1e999999,"m":123456789012345678901234567890}`, `{"level":"info","msg":"a","n":1e999999,"m":123456789012345678901234567890}`},
		{"fatal", `{"msg":"a","level":"fatal"}`, `{"level":"error","msg":"a"}`},
		{"panic", `{"msg":"a","level":"panic"}`, `{"level":"error","msg":"a"}`},
		{"control", `{"msg":"a\r\nb\u0000\u009b","k\u001b":"\u202ev"}`, `{"level":"info","msg":"a\\r\\nb\\x00\\u009b","k\\x1b":"\\u202ev"}`},
		{"bad-utf8", "{\"msg\":\"a\xff\"}", `{"level":"info","msg":"a` + "\ufffd" + `"}`},
		{"bad-time", `{"ts":[],"msg":"a"}`, `{"level":"info","msg":"a"}`},
		{"old-time", `{"ts":"1999-01-01T00:00:00.000000Z","msg":"a"}`, `{"level":"info","msg":"a"}`},
		{"space-around", " {\"msg\":\"a\"} \r\n", `{"level":"info","msg":"a"}`},
		{"nested", `{"msg":"a","o":{"x\n":["\u0007"]}}`, `{"level":"info","msg":"a","o":{"x\\n":["\\a"]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, ok := logging.ParseLine([]byte(tt.line))
			if !ok {
				t.Fatal("not taken")
			}
			l, out := newLogger(t, logging.Config{})
			e.Emit(l.Zap())
			line := strings.TrimSpace(out.String())
			now := regexp.MustCompile(`"ts":"([^"]*)",`)
			if diff := cmp.Diff(tt.want, now.ReplaceAllString(line, "")); diff != "" {
				t.Error(diff)
			}
			ts, err := time.Parse(time.RFC3339, now.FindStringSubmatch(line)[1])
			if err != nil || time.Since(ts).Abs() > time.Minute {
				t.Errorf("time is %v (%v)", ts, err)
			}
		})
	}
}

func TestEmitObeysTheReadersLevels(t *testing.T) {
	l, out := newLogger(t, logging.Config{Levels: map[string]string{"plugin.x.keymanager": "debug"}})
	e := logging.Entry{Level: zapcore.DebugLevel, Logger: "keymanager", Message: "m"}
	e.Emit(l.Zap())
	if out.Len() > 0 {
		t.Errorf("written below the level: %s", out)
	}
	e.Emit(l.Zap().Named("plugin.x"))
	if !strings.Contains(out.String(), `"logger":"plugin.x.keymanager"`) {
		t.Errorf("line is %q", out)
	}
}

// FuzzParseLine holds that any bytes give at most one line, which is JSON, has
// no control character in it and is understood as the same line again.
func FuzzParseLine(f *testing.F) {
	for _, s := range []string{
		``, `{"@message":1}`, `{"msg":"a"}`, `{"ts":"2026-01-02T03:04:05.000006Z","level":"debug","logger":"keymanager","msg":"signed","n":[1,{"a":null}]}`,
		`{"msg":"\u0000","a":1e99999}`, `{"msg":"a","msg":2}`, "{\"msg\":\"\xff\x1b\"}", `{"msg":"a","":{}}`, `{"msg":"a","k":"\u2028"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := logging.ParseLine(line)
		if !ok {
			return
		}
		l, out := newLogger(t, logging.Config{Level: "debug"})
		e.Emit(l.Zap())
		written := out.Bytes()
		if !json.Valid(written) || bytes.Count(written, []byte("\n")) != 1 {
			t.Fatalf("written: %q", written)
		}
		if i := bytes.IndexFunc(written[:len(written)-1], func(r rune) bool { return r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 }); i >= 0 {
			t.Fatalf("control character at %d: %q", i, written)
		}
		if len(written) > logging.MaxLine {
			return // escapes made it longer
		}
		again, ok := logging.ParseLine(written)
		if !ok {
			t.Fatalf("not understood again: %q", written)
		}
		if again.Message != e.Message || again.Logger != e.Logger || again.Level != e.Level || len(again.Fields) != len(e.Fields) {
			t.Fatalf("not the same: %q", written)
		}
	})
}
