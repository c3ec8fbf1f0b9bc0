// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// MaxFile bounds a configuration file, in bytes: a keystore or a log given by
// mistake is refused and not parsed.
const MaxFile = 4 << 20

// readFile reads a configuration file. The document comes along for the lines
// of its keys.
func readFile(file string) (*settings, *node, error) {
	raw, err := readAll(file)
	if err != nil {
		return nil, nil, err
	}
	s, doc, err := decode(file, raw)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Plugins {
		s.Plugins[i].Settings = pluginSettings(doc, i)
	}
	return s, doc, nil
}

func readAll(file string) ([]byte, error) {
	raw, err := readAtMost(file, MaxFile+1)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if err == nil && len(raw) > MaxFile {
		err = fmt.Errorf("over %d bytes are too long for a configuration", MaxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration file %q: %w", file, err)
	}
	return bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), nil
}

// readAtMost goes by what it reads, since a pipe and a device have no size.
func readAtMost(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// formatOf tells the format by the name's ending; YAML is what any other name
// holds.
func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json":
		return "json"
	case ".toml":
		return "toml"
	}
	return "yaml"
}

func decode(file string, raw []byte) (*settings, *node, error) {
	format := formatOf(file)
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetConfigType(format)
	doc, err := parse(format, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %q: %w", file, err)
	}
	c := checker{}
	c.value(doc, reflect.TypeFor[settings](), "")
	if len(c.found) > 0 {
		return nil, nil, problems(file, c.found)
	}
	if err := v.ReadConfig(bytes.NewReader(raw)); err != nil {
		return nil, nil, fmt.Errorf("configuration file %q: %w", file, err)
	}
	var s settings
	if err := v.UnmarshalExact(&s, strict); err != nil {
		return nil, nil, fmt.Errorf("configuration file %q: %w", file, err)
	}
	return &s, doc, nil
}

// strict turns off what viper is lenient about: "1" is not true, "a,b" is not a
// list, and 600 is not a duration of 600 ns.
func strict(c *mapstructure.DecoderConfig) {
	c.WeaklyTypedInput = false
	c.DecodeHook = func(from, to reflect.Type, data any) (any, error) {
		switch {
		case to == reflect.TypeFor[time.Duration]() && from.Kind() == reflect.String:
			return parseDuration(data.(string))
		case to == reflect.TypeFor[span]() && from.Kind() == reflect.String:
			return parseSpan(data.(string))
		case (to == reflect.TypeFor[time.Duration]() || to == reflect.TypeFor[span]()) && from != to:
			return nil, errors.New("a bare number is no duration")
		case to == reflect.TypeFor[paths]() && from.Kind() == reflect.String:
			return paths{data.(string)}, nil
		}
		return data, nil
	}
}

// pluginSettings returns plugins[i].settings with the keys' own case.
func pluginSettings(doc *node, i int) map[string]any {
	n := doc.at(fmt.Sprintf("plugins[%d].settings", i))
	if n == nil || n.kind != kindMapping {
		return nil
	}
	return n.value().(map[string]any)
}
