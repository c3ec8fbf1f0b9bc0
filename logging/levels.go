// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
)

// off is above every level that zap knows.
const off = zapcore.FatalLevel + 1

const levelNames = "debug, info, warn, error, off"

// ParseLevel returns the level called s, without regard to case; empty is info.
// The error lists the known ones.
func ParseLevel(s string) (zapcore.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return zapcore.DebugLevel, nil
	case "", "info":
		return zapcore.InfoLevel, nil
	case "warn":
		return zapcore.WarnLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "off":
		return off, nil
	}
	return 0, fmt.Errorf("log level %q: unknown; known are %s", s, levelNames)
}

func levelName(l zapcore.Level) string {
	if l == off {
		return "off"
	}
	return l.String()
}

// levels is the set of levels in force, published as one value.
type levels struct {
	now atomic.Pointer[levelSet]
	mu  sync.Mutex // held while a new set is made from the one in now
}

// levelSet is immutable once published.
type levelSet struct {
	byName map[string]zapcore.Level // always holds "", the root
	lowest zapcore.Level            // of byName: below it nobody logs
}

func newLevels() *levels {
	ls := &levels{}
	ls.now.Store(&levelSet{byName: map[string]zapcore.Level{"": zapcore.InfoLevel}})
	return ls
}

func (ls *levels) set(byName map[string]string) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	next := maps.Clone(ls.now.Load().byName)
	for name, s := range byName {
		l, err := ParseLevel(s)
		if err != nil {
			if name != "" {
				err = fmt.Errorf("logger %q: %w", name, err)
			}
			return err
		}
		if s == "" && name != "" {
			delete(next, name)
			continue
		}
		next[name] = l
	}
	lowest := off
	for _, l := range next {
		lowest = min(lowest, l)
	}
	ls.now.Store(&levelSet{byName: next, lowest: lowest})
	return nil
}

func (ls *levels) all() map[string]string {
	set := ls.now.Load()
	names := make(map[string]string, len(set.byName))
	for name, l := range set.byName {
		names[name] = levelName(l)
	}
	return names
}

// of returns the level of the logger called name: its own, or that of the
// nearest name above it.
func (s *levelSet) of(name string) zapcore.Level {
	for {
		if l, ok := s.byName[name]; ok {
			return l
		}
		name = name[:max(strings.LastIndexByte(name, '.'), 0)]
	}
}

// ChangedLevels returns those levels of next that are not those of old, for
// SetLevels: what was set meanwhile and is the same in both stays. An empty level
// takes a logger's own away.
func ChangedLevels(old, next map[string]string) map[string]string {
	changed := map[string]string{}
	for name := range old {
		if _, stays := next[name]; !stays {
			changed[name] = ""
		}
	}
	for name, level := range next {
		if was, there := old[name]; !there || was != level {
			changed[name] = level
		}
	}
	return changed
}

// core decides by the name of the logger, which zap's own level cannot: it may
// be raised for a named logger and never lowered.
type core struct {
	zapcore.Core
	levels *levels
}

// Enabled answers before a name is known: true if some logger logs at l.
func (c *core) Enabled(l zapcore.Level) bool { return l >= c.levels.now.Load().lowest }

// Level makes zapcore.LevelOf agree with Enabled.
func (c *core) Level() zapcore.Level { return c.levels.now.Load().lowest }

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{Core: c.Core.With(fields), levels: c.levels}
}

func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	set := c.levels.now.Load()
	if e.Level < set.lowest || e.Level < set.of(e.LoggerName) {
		return ce
	}
	return c.Core.Check(e, ce)
}
