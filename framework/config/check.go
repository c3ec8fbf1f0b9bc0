// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tlsd/tlsd/logging"
)

// problem is one thing that is wrong in a configuration file.
type problem struct {
	line int // 0: not known
	text string
}

// problems joins what was found into one error that names the file, in the
// order of the lines.
func problems(file string, found []problem) error {
	slices.SortStableFunc(found, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, p := range found {
		where := ""
		if p.line > 0 {
			where = fmt.Sprintf("line %d: ", p.line)
		}
		errs = append(errs, fmt.Errorf("configuration file %q: %s%s", file, where, p.text))
	}
	return errors.Join(errs...)
}

// checker holds a document against the settings: unknown and repeated keys,
// values of the wrong kind. viper sees none of the first two (it lower-cases
// keys and forgets those without a value), and its messages know no lines.
type checker struct{ found []problem }

// report notes a problem. Keys stand in its text as the file has them, whatever
// characters that may be.
func (c *checker) report(line int, format string, args ...any) {
	c.found = append(c.found, problem{line, logging.Printable(fmt.Sprintf(format, args...))})
}

func (c *checker) value(n *node, t reflect.Type, path string) {
	switch {
	case n.kind == kindNull:
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[span]():
		c.duration(n, t, path)
	case t == reflect.TypeFor[paths]() && n.kind == kindText:
	case t.Kind() == reflect.Pointer:
		c.value(n, t.Elem(), path)
	case t.Kind() == reflect.Struct:
		if c.kind(n, kindMapping, path) {
			c.fields(n, t, path)
		}
	case t.Kind() == reflect.Slice:
		if c.kind(n, kindList, path) {
			for i, item := range n.items {
				c.value(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
			}
		}
	case t.Kind() == reflect.Map:
		if c.kind(n, kindMapping, path) {
			c.repeated(n, path)
		}
	default:
		if c.kind(n, scalarKind(t), path) && n.kind == kindNumber {
			c.whole(n, path)
		}
	}
}

// whole refuses a fraction, which decoding would cut off, and less than zero,
// which no key means anything by.
func (c *checker) whole(n *node, path string) {
	switch i, err := strconv.Atoi(fmt.Sprint(n.scalar)); {
	case err != nil:
		c.report(n.line, "%s: %v is no whole number", path, n.scalar)
	case i < 0:
		c.report(n.line, "%s: %d must not be less than zero", path, i)
	}
}

func scalarKind(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Bool:
		return kindBool
	case reflect.Int:
		return kindNumber
	}
	return kindText
}

func (c *checker) kind(n *node, want kind, path string) bool {
	if n.kind == want {
		return true
	}
	if path == "" {
		path = "the file"
	}
	hint := ""
	if want == kindText && (n.kind == kindNumber || n.kind == kindBool) {
		hint = "; put it in quotes"
	}
	c.report(n.line, "%s: must be %s and is %s%s", path, want, n.kind, hint)
	return false
}

func (c *checker) duration(n *node, t reflect.Type, path string) {
	if n.kind == kindNumber {
		c.report(n.line, "%s: a bare number is no duration; write a unit, as in %vs", path, n.scalar)
		return
	}
	if !c.kind(n, kindText, path) {
		return
	}
	_, err := parseSpan(n.scalar.(string))
	if t != reflect.TypeFor[span]() {
		_, err = parseDuration(n.scalar.(string))
	}
	if err != nil {
		c.report(n.line, "%s: %v", path, err)
	}
}

func (c *checker) fields(n *node, t reflect.Type, path string) {
	c.repeated(n, path)
	keys := keysOf(t)
	for _, f := range n.fields {
		at := join(path, f.key)
		i := slices.Index(keys, f.key)
		if i < 0 {
			c.report(f.line, "%s: unknown key%s", at, unknownHint(f.key, keys))
			continue
		}
		c.value(f.value, fieldsOf(t)[i].Type, at)
	}
}

func (c *checker) repeated(n *node, path string) {
	first := map[string]int{}
	for _, f := range n.fields {
		if line, again := first[f.key]; again {
			c.report(f.line, "%s: given twice, first on line %d", join(path, f.key), line)
			continue
		}
		first[f.key] = f.line
	}
}

// unknownHint says what to write instead of an unknown key.
func unknownHint(key string, known []string) string {
	if strings.HasSuffix(strings.ToLower(key), "password") || strings.EqualFold(key, "passphrase") {
		return "; a password does not stand in the configuration: name a file with password_file, or set TLSD_KEYSTORE_PASSWORD"
	}
	if near := nearest(key, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; known here: " + strings.Join(known, ", ")
}

// fieldsOf returns the fields of a settings struct that a file may give.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("mapstructure") != "-" {
			fields = append(fields, f)
		}
	}
	return fields
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.Tag.Get("mapstructure"))
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
