// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/logging"
)

// msgExpires is framework/choose's word for what check finds by itself.
const msgExpires = "certificate expires"

// warnings keeps what the key manager warns of, for a report. It is safe for
// concurrent use.
type warnings struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

// beside returns a logger that writes to log and to w. Where eff has the log off,
// the key process is asked for warnings all the same.
func (w *warnings) beside(log *zap.Logger, eff *config.Effective) *zap.Logger {
	if eff.LogLevels[""] == "off" {
		eff.LogLevels = map[string]string{"": "warn"}
	}
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewTee(c, &warningCore{LevelEnabler: zapcore.WarnLevel, to: w})
	}))
}

// notes returns each warning once.
func (w *warnings) notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.texts)
	return slices.Compact(w.texts)
}

// add takes what check doesn't say of entries anyway.
func (w *warnings) add(e zapcore.Entry, fields map[string]any) {
	if e.LoggerName != logging.KeyManager || e.Message == logging.MsgNotUsable || e.Message == msgExpires {
		return
	}
	var text strings.Builder
	for _, name := range []string{logging.FieldKeystore, "path", logging.FieldAlias} {
		if v, _ := fields[name].(string); v != "" {
			fmt.Fprintf(&text, "%s %q: ", name, v)
		}
	}
	text.WriteString(e.Message)
	if reason, _ := fields[logging.FieldReason].(string); reason != "" {
		text.WriteString(": " + reason)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text.String())
}

// warningCore is a zapcore.Core that hands warnings on.
type warningCore struct {
	zapcore.LevelEnabler
	with []zapcore.Field
	to   *warnings
}

func (c *warningCore) With(fields []zapcore.Field) zapcore.Core {
	return &warningCore{c.LevelEnabler, slices.Concat(c.with, fields), c.to}
}

func (c *warningCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *warningCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(c.with, fields) {
		f.AddTo(enc)
	}
	c.to.add(e, enc.Fields)
	return nil
}

func (c *warningCore) Sync() error { return nil }
