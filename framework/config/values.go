// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
)

// values lists every key with its value and origin, in the order of settings.
func (d *draft) values() []Value {
	w := walker{d: d}
	w.fields(reflect.ValueOf(d.settings), "")
	return w.out
}

type walker struct {
	d   *draft
	out []Value
}

func (w *walker) fields(v reflect.Value, path string) {
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		key := join(path, tag.Get("mapstructure"))
		switch {
		case tag.Get("show") != "":
			if !f.IsZero() {
				w.add(join(path, tag.Get("show")), show(f))
			}
		case f.Kind() == reflect.Struct:
			w.fields(f, key)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			for j := range f.Len() {
				w.fields(f.Index(j), fmt.Sprintf("%s[%d]", key, j))
			}
		default:
			w.add(key, show(f))
		}
	}
}

func (w *walker) add(key, value string) {
	origin := w.d.origin(key)
	if origin == OriginDefault && strings.Contains(key, ".hosts[") {
		return // it is the listener's
	}
	w.out = append(w.out, Value{Key: key, Value: value, Origin: origin})
}

// show writes a value as a configuration file has it. Of a plugin's settings
// only the keys are shown: any of them may be a secret.
func show(f reflect.Value) string {
	switch v := f.Interface().(type) {
	case time.Duration:
		return formatDuration(v)
	case span:
		return formatDuration(time.Duration(v))
	case *string:
		if v == nil {
			return ""
		}
		return *v
	case paths:
		return strings.Join(v, ",")
	case []string:
		return strings.Join(v, ",")
	case map[string]any:
		var keys []string
		for k := range v {
			keys = append(keys, k+": [secret]")
		}
		sort.Strings(keys)
		return strings.Join(keys, ", ")
	}
	return fmt.Sprint(f.Interface())
}
