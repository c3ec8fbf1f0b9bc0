// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// draft is a configuration in the making: the file's settings, and what was
// given elsewhere. What is given once for all keystores or for the one listener
// is laid over the lists when all of them are known.
type draft struct {
	settings
	file    string
	doc     *node
	origins map[string]string // by key, what the file did not say
	dropped []string          // lists of the file that others replaced
	notes   []string

	passwords     given[keymanager.PasswordRef]
	keyPasswords  given[keymanager.PasswordRef]
	emptyPassword bool // the environment's is set and empty
	storeType     given[string]
	perListener   []overlay // --listen and its like: for a single listener
	perEvery      []overlay // a JVM's properties: for every listener

	certChecking given[string]
	demo         bool

	trust          given[string] // trust stores of an endpoint, and files with their passwords
	trustPasswords given[string]
}

// given is a list of values and where they were given; empty: nowhere.
type given[T any] struct {
	values []T
	from   string
}

// overlay is one value for a field of a listener.
type overlay struct {
	key, from string
	set       func(l *listener) error
}

func newDraft(file string) (*draft, error) {
	d := &draft{file: file, origins: map[string]string{}}
	if file == "" {
		return d, nil
	}
	s, doc, err := readFile(file)
	if err != nil {
		return nil, err
	}
	d.settings, d.doc = *s, doc
	return d, nil
}

func (d *draft) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// origin says where the value of a key came from.
func (d *draft) origin(key string) string {
	if from := d.origins[key]; from != "" {
		return from
	}
	list, _, _ := strings.Cut(key, "[")
	if d.doc == nil || slices.Contains(d.dropped, list) {
		return OriginDefault
	}
	n := d.doc.at(key)
	switch {
	case n == nil || n.kind == kindNull:
		return OriginDefault
	case n.line == 0:
		return d.file
	}
	return fmt.Sprintf("%s:%d", d.file, n.line)
}

// OriginDefault is the Origin of a Value that nobody gave.
const OriginDefault = "default"

// wrong is an error about the value of a key.
func (d *draft) wrong(key, format string, args ...any) error {
	where := d.origin(key)
	if where == OriginDefault {
		return fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...))
	}
	return fmt.Errorf("%s (%s): %w", key, where, fmt.Errorf(format, args...))
}

// finish lays the overlays over the lists and fills in the defaults.
func (d *draft) finish() error {
	if err := d.finishListeners(); err != nil {
		return err
	}
	return d.finishRest()
}

// finishRest is finish without the listeners.
func (d *draft) finishRest() error {
	if err := d.finishKeystores(); err != nil {
		return err
	}
	if n := d.KeystoreLimits.Iterations; n <= 0 && d.origin("keystore_limits.iterations") != OriginDefault {
		return d.wrong("keystore_limits.iterations", "%d must be more than zero", n)
	}
	return fillDefaults(reflect.ValueOf(&d.settings).Elem())
}

// fillDefaults sets each field that is empty to what its default tag says.
func fillDefaults(v reflect.Value) error {
	for i := range v.NumField() {
		f, text := v.Field(i), v.Type().Field(i).Tag.Get("default")
		switch {
		case f.Kind() == reflect.Struct:
			if err := fillDefaults(f); err != nil {
				return err
			}
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			for j := range f.Len() {
				if err := fillDefaults(f.Index(j)); err != nil {
					return err
				}
			}
		case text != "" && f.IsZero():
			if err := setText(f, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func setText(f reflect.Value, text string) error {
	switch f.Kind() {
	case reflect.Pointer:
		f.Set(reflect.ValueOf(&text))
	case reflect.String:
		f.SetString(text)
	case reflect.Int:
		_, err := fmt.Sscan(text, f.Addr().Interface())
		return err
	default:
		d, err := parseSpan(text)
		f.SetInt(int64(d))
		return err
	}
	return nil
}

// list splits a comma list as a JVM's properties have it.
func list(s string) []string {
	var words []string
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}
