// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// fieldBackend names the backend's URL in the log.
const fieldBackend = "backend"

// reportEvery is the least time between two lines about one backend's failures:
// a backend that is down fails every request.
const reportEvery = time.Second

// reporter logs failures of one backend: the first at once, then at most one
// line each reportEvery that counts what was left out. It is safe for
// concurrent use.
type reporter struct {
	log *zap.Logger

	mu      sync.Mutex // guards what follows
	last    time.Time
	dropped int
}

func newReporter(log *zap.Logger, target Target) *reporter {
	if log == nil {
		log = zap.NewNop()
	}
	return &reporter{log: log.Named("backend").With(zap.Stringer(fieldBackend, target))}
}

// failed writes a line about a failure, unless one was just written.
func (r *reporter) failed(msg string, fields ...zap.Field) {
	dropped, ok := r.admit(time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		fields = append(fields, zap.Int("suppressed", dropped))
	}
	r.log.Warn(msg, fields...)
}

// connFields tells of the connection that err is about.
func connFields(ctx context.Context, peer string, err error) []zap.Field {
	fields := []zap.Field{zap.String(logging.FieldPeer, peer), zap.String(logging.FieldError, err.Error())}
	if info, ok := InfoFrom(ctx); ok && info.Listener != "" {
		fields = append(fields, zap.String(logging.FieldListener, info.Listener))
	}
	return fields
}

// admit reports whether a line may be written now, and how many were not since
// the last one.
func (r *reporter) admit(now time.Time) (dropped int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && now.Sub(r.last) < reportEvery {
		r.dropped++
		return 0, false
	}
	dropped, r.dropped, r.last = r.dropped, 0, now
	return dropped, true
}
