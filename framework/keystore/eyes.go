// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

const (
	// msgNoEvents tells that changes are found by comparing alone.
	msgNoEvents = "no file events for keystores: changes are found by reload_poll"
	// maxSettling bounds how often watches are set anew because directories
	// changed meanwhile.
	maxSettling = 4
)

// eyes get events of the files that followed names. They go dead quietly where
// there are no events to be had: content is compared from time to time anyway.
type eyes struct {
	paths   []string
	names   map[string]bool // that matter, after the last open
	watcher *fsnotify.Watcher
	blind   map[string]bool // directories that can't be watched, each told of once
	log     *zap.Logger
}

// newEyes returns eyes that are closed by close.
func newEyes(paths []string, log *zap.Logger) *eyes {
	e := &eyes{paths: paths, blind: make(map[string]bool), log: log}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		e.tell("", err)
		return e
	}
	e.watcher = w
	return e
}

func (e *eyes) close() {
	if e.watcher != nil {
		_ = e.watcher.Close()
	}
}

// events returns what tells of changes; nil, which tells of none, where there
// are no events.
func (e *eyes) events() (<-chan fsnotify.Event, <-chan error) {
	if e.watcher == nil {
		return nil, nil
	}
	return e.watcher.Events, e.watcher.Errors
}

// matters says whether an event is about one of the files, or a directory or
// link on the way to it.
func (e *eyes) matters(ev fsnotify.Event) bool { return e.names[ev.Name] }

// open sets the watches by what the file system is now. What changes after it
// has returned is told of.
func (e *eyes) open() {
	if e.watcher == nil {
		return
	}
	dirs, names := trails(e.paths)
	for range maxSettling {
		e.watch(dirs)
		again, _ := trails(e.paths)
		if slices.Equal(again, dirs) {
			break
		}
		dirs, names = trails(e.paths)
	}
	e.names = names
}

// watch makes dirs the directories that are watched. One that was removed isn't
// any more, by inotify's own doing, and is added anew when it is back.
func (e *eyes) watch(dirs []string) {
	have := e.watcher.WatchList()
	for _, dir := range have {
		if !slices.Contains(dirs, dir) {
			_ = e.watcher.Remove(dir) // it may be gone
		}
	}
	for _, dir := range dirs {
		if slices.Contains(have, dir) {
			continue
		}
		if err := e.watcher.Add(dir); err != nil && !missing(err) {
			e.tell(dir, err)
		}
	}
}

// tell says once for each directory why there are no events.
func (e *eyes) tell(dir string, err error) {
	if e.blind[dir] {
		return
	}
	e.blind[dir] = true
	e.log.Warn(msgNoEvents, zap.String("directory", dir), zap.String(logging.FieldError, err.Error()))
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
