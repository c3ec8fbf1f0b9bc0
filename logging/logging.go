// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package logging sets up zap for front and key process alike: one line of JSON
// or console text each, a level for each named logger, and the names of fields
// and messages in one place.
//
// [New] makes a [Logger]; what the rest of the program is handed is its
// *zap.Logger. There is no global one. [ParseLine] and [Entry.Emit] carry the
// lines of a key process into the front's log.
//
// It writes to one place, stderr unless told otherwise. Files, rotation and
// sampling are left to whatever reads that: a log of key use with lines missing
// would not be one. Only where nobody reads for a second are lines left out, and
// the log says how many: a reader that stands still must not stop handshakes.
package logging

import (
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Formats of lines.
const (
	FormatJSON    = "json"
	FormatConsole = "console"
)

// Config says what is logged, how and where. The zero value is info and above,
// on stderr, for whoever reads it.
type Config struct {
	Level  string              // of every logger that Levels doesn't cover; empty: info
	Format string              // FormatJSON or FormatConsole; empty: console if Output is a terminal, else JSON; there in colour unless NO_COLOR is set
	Levels map[string]string   // by logger name, as SetLevels
	Output zapcore.WriteSyncer // nil: stderr
}

// Logger is a zap logger whose levels can be changed while it is in use. It is
// safe for concurrent use.
type Logger struct {
	zap    *zap.Logger
	levels *levels
}

// New returns a logger by c. The error names the value that is wrong and those
// that are known.
func New(c Config) (*Logger, error) {
	out := c.Output
	if out == nil {
		out = os.Stderr
	}
	enc, err := newEncoder(c.Format, out)
	if err != nil {
		return nil, err
	}
	ls := newLevels()
	if err := ls.set(map[string]string{"": c.Level}); err != nil {
		return nil, err
	}
	if err := ls.set(c.Levels); err != nil {
		return nil, err
	}
	all := zapcore.NewCore(enc, zapcore.Lock(&patient{out: out, enc: enc}), zapcore.DebugLevel) // core decides
	return &Logger{zap: zap.New(&core{Core: all, levels: ls}), levels: ls}, nil
}

// Zap returns the root logger. Loggers named from it obey their own levels.
func (l *Logger) Zap() *zap.Logger { return l.zap }

// SetLevels sets levels by logger name; "" is the root and covers every logger
// without a level of its own. A name covers the loggers below it: "plugin" is
// also the level of "plugin.pkix" where that has none. Names not given keep
// their level, and an empty level takes a name's own level away again. On error
// nothing has changed. Loggers in use follow at once.
func (l *Logger) SetLevels(byName map[string]string) error { return l.levels.set(byName) }

// Levels returns the levels in force by logger name, the root as "". The map is
// the caller's.
func (l *Logger) Levels() map[string]string { return l.levels.all() }

// timeLayout is RFC 3339 with microseconds of fixed width, so that lines sort.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

func newEncoder(format string, out io.Writer) (zapcore.Encoder, error) {
	c := zapcore.EncoderConfig{
		TimeKey:        keyTime,
		LevelKey:       keyLevel,
		NameKey:        keyLogger,
		MessageKey:     keyMessage,
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeTime:     func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(t.UTC().Format(timeLayout)) },
		EncodeDuration: zapcore.StringDurationEncoder,
	}
	if format == "" {
		format = FormatJSON
		if isTerminal(out) {
			format = FormatConsole
		}
	}
	switch format {
	case FormatJSON:
		return zapcore.NewJSONEncoder(c), nil
	case FormatConsole:
		return newConsole(isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"), nil
	}
	return nil, fmt.Errorf("log format %q: unknown; known are %s and %s", format, FormatJSON, FormatConsole)
}

// isTerminal takes every character device for one; on the others, such as
// /dev/null, nobody minds the format.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
