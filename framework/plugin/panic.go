// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"runtime"
	"strings"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

const msgPanic = "key manager panicked"

// logPanic writes one line that tells of a panic. It is called by the deferred
// function that recovered it.
func logPanic(log *zap.Logger, op string, p any) {
	log.Error(msgPanic,
		zap.String("operation", op),
		zap.String(logging.FieldError, fmt.Sprint(p)),
		zap.String(logging.FieldStack, stack()))
}

// stack returns the caller's stack from the panic on, without arguments: a key
// passed by value would stand among them, were it runtime's own.
func stack() string {
	pcs := make([]uintptr, 48)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var b strings.Builder
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function == "runtime.gopanic" {
			b.Reset()
			continue
		}
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return b.String()
}
