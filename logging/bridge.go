// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Bounds on a line that another process wrote.
const (
	MaxLine       = 16 << 10 // bytes
	maxFields     = 64
	maxLoggerName = 64 // bytes
	maxClockSkew  = time.Minute
)

// Entry is one line of another process's log.
type Entry struct {
	Time    time.Time // zero: when it arrived
	Level   zapcore.Level
	Logger  string // empty: the root
	Message string
	Fields  []zap.Field
}

// ParseLine reads a line that a Logger with FormatJSON wrote in another
// process, or may have written: that process is not trusted, and its line may
// be any bytes. It reports false for what is no such line: more than MaxLine
// bytes or 64 fields, not one JSON object, without message or with a level, name
// or message that is none. What is left is fit to be written by any Logger: no key twice,
// nothing that a terminal would obey, no level that ends or panics the reader.
func ParseLine(line []byte) (Entry, bool) {
	if len(line) > MaxLine {
		return Entry{}, false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return Entry{}, false
	}
	e := Entry{Level: zapcore.InfoLevel}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token() // always a string here: encoding/json insists
		if err != nil {
			return Entry{}, false
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return Entry{}, false
		}
		name, _ := key.(string)
		if name = Printable(name); seen[name] {
			continue
		}
		seen[name] = true
		if !e.add(name, value) {
			return Entry{}, false
		}
	}
	if _, err := d.Token(); err != nil || !seen[keyMessage] {
		return Entry{}, false
	}
	return e, len(bytes.TrimSpace(line[d.InputOffset():])) == 0
}

// Emit writes e by log, whose core decides by e's level and logger name whether
// to. The name stands below log's own.
func (e Entry) Emit(log *zap.Logger) {
	entry := zapcore.Entry{Time: e.Time, Level: e.Level, LoggerName: e.Logger, Message: e.Message}
	if own := log.Name(); own != "" {
		entry.LoggerName = strings.TrimSuffix(own+"."+e.Logger, ".")
	}
	if now := time.Now(); e.Time.IsZero() || now.Sub(e.Time).Abs() > maxClockSkew {
		entry.Time = now
	}
	if ce := log.Core().Check(entry, nil); ce != nil {
		ce.Write(e.Fields...)
	}
}

// Printable returns s with everything that is no printable character escaped as
// in a Go string, so that it can do nothing to a terminal or to the lines
// around it. Bytes that are no UTF-8 become U+FFFD.
func Printable(s string) string { return escape(s, "") }

// escape leaves the characters in keep as they are.
func escape(s, keep string) string {
	plain := func(r rune) bool { return unicode.IsPrint(r) || strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// add takes one key and value into e and reports whether they may stand in a
// line of ours.
func (e *Entry) add(key string, value any) bool {
	text, isText := value.(string)
	switch key {
	case keyTime:
		if t, err := time.Parse(timeLayout, text); err == nil {
			e.Time = t
		}
		return true // a wrong time loses no more than the time
	case keyLevel:
		l, err := zapcore.ParseLevel(text)
		e.Level = min(l, zapcore.ErrorLevel)
		return isText && err == nil
	case keyLogger:
		e.Logger = text
		return isText && isLoggerName(text)
	case keyMessage:
		e.Message = Printable(text)
		return isText
	}
	e.Fields = append(e.Fields, fieldOf(key, value))
	return len(e.Fields) <= maxFields
}

// fieldOf returns the field that writes value as it was read.
func fieldOf(key string, value any) zap.Field {
	switch v := value.(type) {
	case string:
		return zap.String(key, escape(v, "\n\t"))
	case bool:
		return zap.Bool(key, v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return zap.Int64(key, n)
		}
	}
	return zap.Reflect(key, printableIn(value))
}

// printableIn returns v with the texts within it escaped; v is used up.
func printableIn(v any) any {
	switch v := v.(type) {
	case string:
		return escape(v, "\n\t")
	case []any:
		for i := range v {
			v[i] = printableIn(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, x := range v {
			clean[Printable(k)] = printableIn(x)
		}
		return clean
	}
	return v
}

// isLoggerName accepts what loggers of ours are called: short, and nothing that
// needs escaping where the console format writes it bare.
func isLoggerName(s string) bool {
	ok := func(r rune) bool {
		return r == '.' || r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return len(s) <= maxLoggerName && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
}
