// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

const (
	maxLevels    = 16 << 10 // bytes of a request
	levelTimeout = 3 * time.Second
	longest      = 24 * time.Hour // that levels are set for a time
)

// loggers are those that have a name, here and in the key process. Those below
// one, such as plugin.NAME, are covered by it and may have a level of their own.
func loggers() []string {
	return []string{logging.KeyManager, "server", logging.Access, "plugin", "backend", "config", "admin", "std"}
}

func (a *Admin) showLevels(w http.ResponseWriter, _ *http.Request) { tell(w, a.cfg.Levels.Levels()) }

// putLevels sets the levels that the body names, a JSON object, here and in the
// key process; null takes a logger's own level away. With ?for=DURATION they are
// taken back after it.
func (a *Admin) putLevels(w http.ResponseWriter, r *http.Request) {
	levels, err := parseLevels(http.MaxBytesReader(w, r.Body, maxLevels))
	if err != nil {
		say(w, http.StatusBadRequest, err.Error())
		return
	}
	var last time.Duration
	if text := r.URL.Query().Get("for"); text != "" {
		if last, err = time.ParseDuration(text); err != nil || last <= 0 || last > longest {
			say(w, http.StatusBadRequest, fmt.Sprintf("for=%s: write a duration up to %v, as in for=10m", text, longest))
			return
		}
	}
	if err := a.levels.put(r.Context(), levels, last); err != nil {
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	a.showLevels(w, r)
}

func parseLevels(body io.Reader) (map[string]string, error) {
	var given map[string]*string
	raw, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(raw, &given)
	}
	if err != nil || len(given) == 0 {
		return nil, errors.New(`the body names no levels: write a JSON object as in {"keymanager": "debug"}`)
	}
	levels := map[string]string{}
	for name, level := range given {
		first, _, _ := strings.Cut(name, ".")
		switch {
		case name != "" && !slices.Contains(loggers(), first):
			return nil, fmt.Errorf(`there is no logger %q; there are %s, and "" for all without a level of their own`, name, strings.Join(loggers(), ", "))
		case level == nil && name == "":
			return nil, errors.New(`the level of all loggers, "", can't be taken away`)
		case level == nil:
			levels[name] = ""
			continue
		case *level == "":
			return nil, fmt.Errorf("logger %q: the level is empty; null takes it away", name)
		}
		if _, err := logging.ParseLevel(*level); err != nil {
			return nil, fmt.Errorf("logger %q: %w", name, err)
		}
		levels[name] = *level
	}
	return levels, nil
}

// setLevels sets levels in the key process and then here: where the first fails
// nothing has changed. A key manager that can't is left as it is.
func (a *Admin) setLevels(ctx context.Context, levels map[string]string) error {
	if server := a.server.Load(); server != nil {
		ctx, cancel := context.WithTimeout(ctx, levelTimeout)
		defer cancel()
		err := (*server).Keys().SetLogLevels(ctx, levels)
		if err != nil && !errors.Is(err, plugin.ErrUnsupported) {
			return fmt.Errorf("the key process did not take the levels, and nothing has changed: %w", err)
		}
	}
	return a.cfg.Levels.SetLevels(levels)
}

func (a *Admin) currentLevels() map[string]string { return a.cfg.Levels.Levels() }

// logged returns levels as fields of a line.
func logged(levels map[string]string) []zap.Field {
	var fields []zap.Field
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		level := levels[name]
		if level == "" {
			level = "none of its own"
		}
		if name == "" {
			name = "all"
		}
		fields = append(fields, zap.String(name, level))
	}
	return fields
}
