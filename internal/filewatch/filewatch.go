// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package filewatch tells when files may have become others, by the events of
// the directories that matter: those that the files lie in, and those of the
// symbolic links on the way, of which a Kubernetes volume has two. It reads no
// file: what has changed, and whether anything has, is for the caller to find out
// by content, who also looks from time to time, since not every change of a file
// is told of (NFS, bind mounts, writes through a mapping).
package filewatch

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

const (
	// settle is how long events are left to come in before it is told of them, so
	// that one update is looked at once.
	settle = 50 * time.Millisecond
	// maxSettling bounds how often watches are set anew because directories
	// changed meanwhile.
	maxSettling = 4
)

// Watcher gets events of files. It goes dead quietly where there are no events to
// be had. It is for one goroutine.
type Watcher struct {
	names   map[string]bool // that matter, after the last Follow
	watcher *fsnotify.Watcher
	added   map[string]fs.FileInfo // the directories that are watched
	blind   map[string]bool        // directories that can't be watched, each told of once
	log     *zap.Logger
}

// New returns a Watcher, which the caller closes. What can't be watched is logged
// to log, once each.
func New(log *zap.Logger) *Watcher {
	w := &Watcher{added: make(map[string]fs.FileInfo), blind: make(map[string]bool), log: log}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		w.tell("", err)
		return w
	}
	w.watcher = events
	return w
}

// Close ends all watches.
func (w *Watcher) Close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}

// Events returns what tells of changes, and of events that were lost; nil, which
// tells of none, where there are no events.
func (w *Watcher) Events() (<-chan fsnotify.Event, <-chan error) {
	if w.watcher == nil {
		return nil, nil
	}
	return w.watcher.Events, w.watcher.Errors
}

// Matters says whether an event is about one of the files, or a directory or link
// on the way to it.
func (w *Watcher) Matters(ev fsnotify.Event) bool { return w.names[ev.Name] }

// Follow sets the watches for paths by what the file system is now. What changes
// after it has returned is told of; since directories and links may be others
// then, Follow is called anew before each look.
func (w *Watcher) Follow(paths []string) {
	if w.watcher == nil {
		return
	}
	dirs, names := trails(paths)
	for range maxSettling {
		w.watch(dirs)
		again, _ := trails(paths)
		if slices.Equal(again, dirs) {
			break
		}
		dirs, names = trails(paths)
	}
	w.names = names
}

// watch makes dirs the directories that are watched. One that was removed isn't
// any more, by inotify's own doing, and is added anew when it is back; one that
// is another by the same name, since one above it was moved, is given up first.
func (w *Watcher) watch(dirs []string) {
	for _, dir := range w.watcher.WatchList() {
		info, err := os.Stat(dir)
		if err != nil || !slices.Contains(dirs, dir) || !os.SameFile(info, w.added[dir]) {
			_ = w.watcher.Remove(dir) // it may be gone
		}
	}
	have := w.watcher.WatchList()
	for _, dir := range dirs {
		if slices.Contains(have, dir) {
			continue
		}
		info, err := os.Stat(dir) // before it is watched: if it is another by then, the next call finds out
		if err == nil {
			w.added[dir] = info
			err = w.watcher.Add(dir)
		}
		if err != nil && !missing(err) {
			w.tell(dir, err)
		}
	}
	maps.DeleteFunc(w.added, func(dir string, _ fs.FileInfo) bool { return !slices.Contains(dirs, dir) })
}

// tell says once for each directory why there are no events.
func (w *Watcher) tell(dir string, err error) {
	if w.blind[dir] {
		return
	}
	w.blind[dir] = true
	w.log.Warn("no file events: changes are found by looking from time to time", zap.String("directory", dir), zap.Error(err))
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Wait returns true when one of the files may have changed, after poll at the
// latest, or when hurry can be received from; false when ctx has ended.
func (w *Watcher) Wait(ctx context.Context, poll time.Duration, hurry <-chan struct{}) bool {
	due := time.NewTimer(poll)
	defer due.Stop()
	events, lost := w.Events()
	var quiet <-chan time.Time // set by the first event; others then add nothing
	for {
		select {
		case ev := <-events:
			if quiet == nil && w.Matters(ev) {
				timer := time.NewTimer(settle)
				defer timer.Stop()
				quiet = timer.C
			}
		case <-lost:
			return true
		case <-quiet:
			return true
		case <-due.C:
			return true
		case <-hurry:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
