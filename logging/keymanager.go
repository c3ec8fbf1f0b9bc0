// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// KeyEvent is what every keymanager line carries, success and failure alike.
// The tier is a field of the logger itself.
type KeyEvent struct {
	Builder    int
	Alias      string // empty: of a keystore as a whole; left out
	Generation uint64
	Reason     string // failures: why, in words that name no secret
	Err        error  // failures: the cause, if there is one
}

// LogKey writes one keymanager line. It is the one place where such lines are
// made, so that success and failure carry the same fields. A level that is off
// costs a comparison, if more is not computed for it.
func LogKey(log *zap.Logger, level zapcore.Level, msg string, e KeyEvent, more ...zap.Field) {
	entry := log.Check(level, msg)
	if entry == nil {
		return
	}
	fields := make([]zap.Field, 0, 5+len(more))
	fields = append(fields, zap.Int(FieldBuilder, e.Builder), zap.Uint64(FieldGeneration, e.Generation))
	if e.Alias != "" {
		fields = append(fields, zap.String(FieldAlias, e.Alias))
	}
	if e.Reason != "" {
		fields = append(fields, zap.String(FieldReason, e.Reason))
	}
	if e.Err != nil {
		fields = append(fields, zap.String(FieldError, e.Err.Error()))
	}
	entry.Write(append(fields, more...)...)
}
