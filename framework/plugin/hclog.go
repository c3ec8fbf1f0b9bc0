// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
)

// pluginLogger returns what go-plugin logs to: its lines about starting and
// ending processes, at debug level, since Host tells the same in its own words.
// go-plugin sees nothing of what a key process writes, see child.Stderr.
func pluginLogger(log *zap.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Debug})
	l.RegisterSink(sink{log.Named("plugin.start")})
	return l
}

// sink is the one method of hclog that matters here.
type sink struct{ log *zap.Logger }

var _ hclog.SinkAdapter = sink{}

// Accept logs one line of go-plugin's.
func (s sink) Accept(_ string, _ hclog.Level, msg string, args ...any) {
	entry := s.log.Check(zap.DebugLevel, msg)
	if entry == nil {
		return
	}
	var fields []zap.Field
	for i := 0; i+1 < len(args); i += 2 {
		fields = append(fields, zap.String(fmt.Sprint(args[i]), clean(fmt.Sprint(args[i+1]), maxErrorText)))
	}
	entry.Write(fields...)
}
