// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/logging"
)

// debugLoggers are the loggers that can be set to debug by themselves.
func debugLoggers() []string { return []string{logging.KeyManager, "server", logging.Access} }

func (d *draft) setLogLevel(v, from string) error {
	d.Log.Level = v
	d.origins["log.level"] = from
	return nil
}

func (d *draft) setLogFormat(v, from string) error {
	d.Log.Format = v
	d.origins["log.format"] = from
	return nil
}

func (d *draft) setDebug(values []string, from string) error {
	d.Log.Debug = nil
	for _, v := range values {
		d.Log.Debug = append(d.Log.Debug, list(v)...)
	}
	d.origins["log.debug"] = from
	return nil
}

// setJavaDebug takes javax.net.debug: options with ":" and "," between them.
// What a JVM's other options would print is not to be had here.
func (d *draft) setJavaDebug(v, from string) error {
	for _, word := range strings.FieldsFunc(v, func(r rune) bool { return r == ':' || r == ',' }) {
		switch strings.ToLower(strings.TrimSpace(word)) {
		case "keymanager", "all":
			return d.setDebug([]string{logging.KeyManager}, from)
		}
	}
	d.note("%s: %q has no effect; keymanager, ssl:keymanager and all have", from, v)
	return nil
}

func (d *draft) checkLog() error {
	if _, err := logging.ParseLevel(d.Log.Level); err != nil {
		return d.wrong("log.level", "%w", err)
	}
	if f := d.Log.Format; f != "" && f != logging.FormatJSON && f != logging.FormatConsole {
		return d.wrong("log.format", "%q is neither json nor console", f)
	}
	for _, name := range d.Log.Debug {
		if !slices.Contains(debugLoggers(), name) {
			return d.wrong("log.debug", "there is no logger %q to debug; there are %s", name, strings.Join(debugLoggers(), ", "))
		}
	}
	return nil
}

// levels returns the level of each named logger; "" is the root.
func (d *draft) levels() map[string]string {
	levels := map[string]string{"": d.Log.Level}
	for _, name := range d.Log.Debug {
		levels[name] = "debug"
	}
	return levels
}

func (d *draft) setDemo(v, from string) error {
	if v != "true" && v != "false" {
		return fmt.Errorf("%s: %q is neither true nor false", from, v)
	}
	d.demo = v == "true"
	return nil
}
