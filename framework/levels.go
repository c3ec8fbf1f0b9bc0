// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/tlsd/tlsd/framework/plugin"
)

// logLevels are those of a key process by logger name: the configured ones, and
// what was set since.
type logLevels struct {
	mu     sync.Mutex // guards byName
	byName map[string]string
}

func (l *logLevels) set(levels map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string]string{}
	}
	maps.Copy(l.byName, levels)
}

func (l *logLevels) all() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.byName)
}

// SetLogLevels sets the levels of the key process's loggers by name, "" being the
// root; an empty level takes a logger's own away. They outlive a restart of the key
// process, and a [Server.Apply] that puts another in its place, but for those that
// the new configuration changes.
func (k *Keys) SetLogLevels(ctx context.Context, levels map[string]string) error {
	err := k.manager.SetLogLevels(ctx, levels)
	if err == nil || errors.Is(err, plugin.ErrUnsupported) { // the one after it may support them
		k.levels.set(levels)
	}
	return err
}
