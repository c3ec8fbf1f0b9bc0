// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/logging"
)

// Bounds on what a key process may have logged. A line costs one token and one
// more for each 256 bytes, and many times as much where it is no log line of
// ours: there is one of those for each signature at debug, while a program that
// prints that much has nothing to say. A panic's stack has room in the burst.
const (
	outputRate  = 4000 // tokens a second
	outputBurst = 8000
	outputUnit  = 256 // bytes
	textCost    = 20  // times
	maxExcerpt  = 200 // bytes of foreign text in an error
)

// output is where the bytes go that a key process writes. They may be any, and
// as many as it likes: they are cut into lines, rate-limited, and logged, each
// line as what it is if it is a log line of ours, else as text.
type output struct {
	log  *zap.Logger // the front's root
	name string      // logger of what is no log line

	mu       sync.Mutex // guards what follows
	tokens   float64
	filled   time.Time
	dropped  int
	reported time.Time
	excerpt  string // first text
}

func newOutput(log *zap.Logger, tier string) *output {
	return &output{log: log, name: "plugin." + tier, tokens: outputBurst, filled: time.Now()}
}

// stream returns a writer for one stream of the key process.
func (o *output) stream(name string) *lineWriter {
	return &lineWriter{line: func(line []byte, cut bool) { o.write(name, line, cut) }}
}

// firstText returns the first line that was no log line of ours, cleaned.
func (o *output) firstText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.excerpt
}

func (o *output) write(stream string, line []byte, cut bool) {
	if !o.admit(line) {
		return
	}
	if stream == "stderr" && !cut {
		if e, ok := logging.ParseLine(line); ok {
			e.Logger = o.loggerName(e.Logger)
			e.Emit(o.log)
			return
		}
	}
	text := string(bytes.TrimSpace(line))
	if text == "" {
		return
	}
	o.keepExcerpt(text)
	fields := []zap.Field{zap.String("stream", stream), zap.String(logging.FieldText, clean(text, logging.MaxLine))}
	if cut {
		fields = append(fields, zap.Bool("cut", true))
	}
	o.log.Named(o.name).Log(textLevel(text), "plugin output", fields...)
}

// loggerName keeps a key process from speaking in the name of the front: it has
// the keymanager logger in common with it, and its own.
func (o *output) loggerName(name string) string {
	for _, allowed := range []string{logging.KeyManager, o.name} {
		if name == allowed || strings.HasPrefix(name, allowed+".") {
			return name
		}
	}
	return strings.TrimSuffix(o.name+"."+name, ".")
}

// textLevel makes the end of a Go program stand out.
func textLevel(text string) zapcore.Level {
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		return zapcore.ErrorLevel
	}
	return zapcore.InfoLevel
}

func (o *output) keepExcerpt(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.excerpt == "" {
		o.excerpt = clean(text, maxExcerpt)
	}
}

// admit says whether a line may be logged, and reports, at most once a second, how
// many were not.
func (o *output) admit(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.tokens = min(outputBurst, o.tokens+now.Sub(o.filled).Seconds()*outputRate)
	o.filled = now
	cost := float64(1 + len(line)/outputUnit)
	if !bytes.HasPrefix(line, []byte("{")) {
		cost *= textCost
	}
	if o.tokens < cost {
		o.dropped++
		return false
	}
	o.tokens -= cost
	if o.dropped > 0 && now.Sub(o.reported) > time.Second {
		o.report(now)
	}
	return true
}

// report is called with mu held.
func (o *output) report(now time.Time) {
	if o.dropped > 0 {
		o.log.Named(o.name).Warn("plugin output dropped: too much of it", zap.Int("lines", o.dropped))
	}
	o.dropped, o.reported = 0, now
}

// end reports what was dropped last.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report(time.Now())
}

// lineWriter cuts what is written to it into lines and hands each to line. Of
// one longer than logging.MaxLine only the beginning is kept, so that neither
// memory nor the writer's progress depends on line ends. It is safe for
// concurrent use.
type lineWriter struct {
	line func(line []byte, cut bool)

	mu   sync.Mutex // guards what follows; held during line
	buf  []byte
	skip bool // the rest of a line that was cut
}

var _ io.Writer = (*lineWriter)(nil)

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		p = rest
		w.add(part, ended)
	}
	return n, nil
}

func (w *lineWriter) add(part []byte, ended bool) {
	if !w.skip {
		room := logging.MaxLine - len(w.buf)
		w.skip = len(part) > room
		w.buf = append(w.buf, part[:min(room, len(part))]...)
		if w.skip || ended {
			w.line(w.buf, w.skip)
			w.buf = w.buf[:0]
		}
	}
	if ended {
		w.skip = false
	}
}

// flush hands over a last line without end.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf) > 0 {
		w.line(w.buf, false)
	}
	w.buf = nil
}
