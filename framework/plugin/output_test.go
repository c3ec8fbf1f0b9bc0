// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/logging"
)

func TestLinesAreCutWhateverTheWritesAre(t *testing.T) {
	long := strings.Repeat("x", logging.MaxLine+10)
	tests := []struct {
		name   string
		writes []string
		want   []string
	}{
		{"one-write", []string{"a\nb\n"}, []string{"a", "b"}},
		{"byte-by-byte", strings.Split("ab\nc\n", ""), []string{"ab", "c"}},
		{"no-end", []string{"a\nb"}, []string{"a", "b"}},
		{"empty-lines", []string{"\n\na"}, []string{"", "", "a"}},
		{"too-long", []string{long, long, "\nb\n"}, []string{long[:logging.MaxLine] + "+", "b"}},
		{"just-not-too-long", []string{long[:logging.MaxLine], "\nb\n"}, []string{long[:logging.MaxLine], "b"}},
		{"nothing", nil, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			w := &lineWriter{line: func(line []byte, cut bool) {
				s := string(line)
				if cut {
					s += "+"
				}
				got = append(got, s)
			}}
			for _, s := range tc.writes {
				if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatalf("wrote %d, %v", n, err)
				}
			}
			w.flush()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOutputIsLoggedAsWhatItIs(t *testing.T) {
	tests := []struct{ name, stream, line, want string }{
		{"ours", "stderr", `{"ts":"2025-01-01T00:00:00.000Z","level":"warn","logger":"keymanager","msg":"found key","alias":"a"}`, "warn keymanager found key map[alias:a]"},
		{"own-logger", "stderr", `{"level":"info","logger":"plugin.t.x","msg":"m"}`, "info plugin.t.x m map[]"},
		{"name-of-another", "stderr", `{"level":"info","logger":"tls","msg":"m"}`, "info plugin.t.tls m map[]"},
		{"name-that-only-begins-so", "stderr", `{"level":"info","logger":"keymanagers","msg":"m"}`, "info plugin.t.keymanagers m map[]"},
		{"own-name-that-only-begins-so", "stderr", `{"level":"info","logger":"plugin.two","msg":"m"}`, "info plugin.t.plugin.two m map[]"},
		{"no-logger", "stderr", `{"level":"info","msg":"m"}`, "info plugin.t m map[]"},
		{"fatal", "stderr", `{"level":"fatal","logger":"keymanager","msg":"m"}`, "error keymanager m map[]"},
		{"text", "stderr", "hello", "info plugin.t plugin output map[stream:stderr text:hello]"},
		{"panic", "stderr", "panic: oh", "error plugin.t plugin output map[stream:stderr text:panic: oh]"},
		{"ours-on-stdout", "stdout", `{"level":"info","msg":"m"}`, `info plugin.t plugin output map[stream:stdout text:{"level":"info","msg":"m"}]`},
		{"hclog", "stderr", `{"@message":1}`, `info plugin.t plugin output map[stream:stderr text:{"@message":1}]`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			_, _ = newOutput(zap.New(core), "t").stream(tc.stream).Write([]byte(tc.line + "\n"))
			var got []string
			for _, e := range logs.All() {
				got = append(got, fmt.Sprintf("%v %s %s %v", e.Level, e.LoggerName, e.Message, e.ContextMap()))
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFloodIsCutToItsRateAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		o := newOutput(zap.New(core), "t")
		w := o.stream("stderr")
		const most = outputBurst / textCost
		flood := func(lines int) {
			for range lines {
				_, _ = w.Write([]byte("x\n"))
			}
		}
		flood(3 * most)
		if n := logs.FilterMessage("plugin output").Len(); n != most {
			t.Errorf("%d lines at once, want %d", n, most)
		}
		time.Sleep(2 * time.Second)
		flood(1)
		said := logs.FilterMessageSnippet("dropped").All()
		if len(said) != 1 || said[0].ContextMap()["lines"] != int64(2*most) {
			t.Errorf("said %v", said)
		}
		flood(3 * most)
		o.end()
		if n := logs.FilterMessageSnippet("dropped").Len(); n != 2 {
			t.Errorf("said %d times, want one more at the end", n)
		}
	})
}

func FuzzOutput(f *testing.F) {
	for _, s := range []string{`{"@message":1}`, `{"msg":"m","level":"panic"}`, "\x00\xff\n\n", `{"msg":{}}`} {
		f.Add([]byte(s))
	}
	core, logs := observer.New(zap.DebugLevel)
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newOutput(zap.New(core), "t").stream("stderr")
		_, _ = w.Write(b)
		w.flush()
		for _, e := range logs.TakeAll() {
			if strings.ContainsAny(e.Message+e.LoggerName, "\n\x1b\x00") || e.Level > zap.ErrorLevel {
				t.Errorf("logged %+v", e)
			}
		}
	})
}
