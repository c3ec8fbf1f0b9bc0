// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// console writes lines for people: what happened first, and why, then the rest
// as key=value in the order given, without those that are empty.
//
//	18:37:34.061 WARN  keymanager: certificate expires: in 9 days  alias=web
type console struct {
	zapcore.Encoder // of the fields, as JSON
	colour          bool
	buffers         buffer.Pool
}

func newConsole(colour bool) *console {
	fields := zapcore.EncoderConfig{SkipLineEnding: true, EncodeDuration: zapcore.StringDurationEncoder}
	return &console{zapcore.NewJSONEncoder(fields), colour, buffer.NewPool()}
}

// Clone is part of zapcore.Encoder.
func (c *console) Clone() zapcore.Encoder { return &console{c.Encoder.Clone(), c.colour, c.buffers} }

// EncodeEntry is part of zapcore.Encoder.
func (c *console) EncodeEntry(e zapcore.Entry, fields []zap.Field) (*buffer.Buffer, error) {
	raw, err := c.Encoder.EncodeEntry(zapcore.Entry{}, fields)
	if err != nil {
		return nil, err
	}
	defer raw.Free()
	pairs, err := flatten(raw.Bytes())
	if err != nil {
		return nil, err
	}
	line := c.buffers.Get()
	line.AppendString(e.Time.Local().Format("15:04:05.000 "))
	line.AppendString(c.paint(colourOf(e.Level), fmt.Sprintf("%-5s", e.Level.CapitalString())) + " ")
	if e.LoggerName != "" {
		line.AppendString(e.LoggerName + ": ")
	}
	line.AppendString(Printable(e.Message))
	for _, key := range []string{FieldReason, FieldError} {
		if why := pairs.take(key); why != "" {
			line.AppendString(": " + Printable(why))
		}
	}
	if alias := pairs.take(FieldAlias); alias != "" {
		pairs = append(pairList{{FieldAlias, alias}}, pairs...)
	}
	gap := "  "
	for _, p := range pairs {
		if p.value != "" {
			line.AppendString(gap + c.paint(dim, p.key+"=") + quoted(p.value))
			gap = " "
		}
	}
	line.AppendString(zapcore.DefaultLineEnding)
	return line, nil
}

// pair is a field as text.
type pair struct{ key, value string }

type pairList []pair

// flatten reads a JSON object. Texts come without quotes, anything else as JSON.
func flatten(object []byte) (pairList, error) {
	var pairs pairList
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		pairs = append(pairs, pair{Printable(fmt.Sprint(key)), text})
	}
	return pairs, nil
}

// take removes a field and returns its value; empty: there is none.
func (l *pairList) take(key string) string {
	for i, p := range *l {
		if p.key == key {
			*l = append((*l)[:i:i], (*l)[i+1:]...)
			return p.value
		}
	}
	return ""
}

// quoted puts a value in quotes where it could be taken for something else.
func quoted(value string) string {
	switch {
	case Printable(value) != value:
		return strconv.Quote(value)
	case !strings.ContainsAny(value, " \"'`="):
		return value
	case !strings.ContainsAny(value, "\"\\"):
		return `"` + value + `"`
	case !strings.ContainsRune(value, '\''):
		return "'" + value + "'"
	}
	return strconv.Quote(value)
}

// Colours as ECMA-48 numbers them (SGR).
const (
	plain  = 0
	dim    = 2
	red    = 31
	yellow = 33
)

func colourOf(l zapcore.Level) int {
	switch {
	case l >= zapcore.ErrorLevel:
		return red
	case l == zapcore.WarnLevel:
		return yellow
	case l == zapcore.DebugLevel:
		return dim
	}
	return plain
}

func (c *console) paint(colour int, text string) string {
	if !c.colour || colour == plain {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}
