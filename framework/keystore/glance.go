// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// glanceWait is how long a look holds up those who glance: enough for an
// ordinary keystore, and little for a handshake.
const glanceWait = 100 * time.Millisecond

// sight is the latest look at files; none before the first, and where nobody
// follows them.
type sight struct{ last atomic.Pointer[seen] }

// seen is one look. It is immutable but for the channels.
type seen struct {
	paths []string
	files []fs.FileInfo // as they were before the look; nil: not there
	began time.Time
	done  chan struct{} // closed when what it found is in use
	next  chan struct{} // closed when there is another, or nobody looks any more
}

// begin makes a look the latest.
func (s *sight) begin(paths []string) *seen {
	l := &seen{paths: paths, files: stats(paths), began: time.Now(), done: make(chan struct{}), next: make(chan struct{})}
	s.set(l)
	return l
}

func (s *sight) end() { s.set(nil) }

func (s *sight) set(l *seen) {
	if old := s.last.Swap(l); old != nil {
		close(old.next)
	}
}

func stats(paths []string) []fs.FileInfo {
	files := make([]fs.FileInfo, len(paths))
	for i, path := range paths {
		files[i], _ = os.Stat(path)
	}
	return files
}

// current reports whether the files are still as l saw them, as far as a stat
// of each tells.
func (l *seen) current() bool {
	return slices.EqualFunc(l.files, l.paths, func(before fs.FileInfo, path string) bool {
		now, err := os.Stat(path)
		if before == nil || err != nil {
			return before == nil && err != nil
		}
		return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
	})
}

// Glance asks for the state of the files, by one stat of each. Where one has
// changed since the last look of a Watch, or a look is under way, Glance waits
// for that look, so that Current is what the files are; but not past ctx, and
// no look is waited for once it has taken glanceWait: what it finds is then used
// when it is proven, and nobody is held up meanwhile. Without a Watch, and where
// nothing has changed, it returns at once.
func (v *Views[T]) Glance(ctx context.Context) {
	var enough <-chan time.Time
	for {
		l := v.sight.last.Load()
		if l == nil {
			return
		}
		current, done := l.current(), isClosed(l.done)
		if current && done || !done && time.Since(l.began) > glanceWait {
			return
		}
		wait := l.done
		if done { // and something has changed since
			wait = l.next
			select {
			case v.hurry <- struct{}{}:
			default: // somebody else has asked
			}
		}
		if enough == nil {
			timer := time.NewTimer(glanceWait)
			defer timer.Stop()
			enough = timer.C
		}
		select {
		case <-wait:
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
