// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package config turns a configuration file, command line flags, system
// properties (-D) and the environment into a framework.Config, and tells of
// each value where it came from. It is the only importer of viper.
//
// What is given later in this list stands above what is given earlier: default,
// file, environment, TLSD_OPTS, -D, flag. [Load] does it all; [Flags] are the
// flags that it reads.
//
// The package opens no keystore, no trust store and no password file: it hands
// paths on.
package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// Names of the environment that Load reads. There are no others.
const (
	EnvKeyManager       = "TLSD_KEYMANAGER"
	EnvKeystorePassword = "TLSD_KEYSTORE_PASSWORD" // a variable's name, no secret
	EnvOpts             = "TLSD_OPTS"

	envPrefix = "TLSD_"
)

// Input is what a configuration is made of. The zero value gives the defaults.
type Input struct {
	Flags   *Flags            // nil: none were given
	Environ []string          // NAME=value, as os.Environ has it, which nil stands for
	Tiers   []keymanager.Tier // built into this program
}

// File returns the path of the configuration file; empty: there is none.
func (in Input) File() string { return in.Flags.one("config") }

// Effective is a configuration and where it came from.
type Effective struct {
	framework.Config

	File   string   // the configuration file; empty: none
	Blank  bool     // the file has no key, or there is none
	Values []Value  // every key with its value and origin, in the order of the reference; of hosts what they state
	Notes  []string // what has no effect, or would surprise: to be logged as warnings

	// Demo asks for a throw-away keystore to be made and put into Keystores.
	Demo bool

	LogLevel        string   // debug, info, warn, error or off
	LogLevelDefault bool     // nobody asked for LogLevel
	LogFormat       string   // json, console, or empty: by the terminal
	Debug           []string // loggers at debug

	Metrics string // address of the metrics listener; empty: none
	Admin   string // address of the admin listener, loopback or unix:PATH; empty: none
	Pprof   bool   // whether the admin listener serves profiles
}

// Value is one effective setting.
type Value struct {
	Key    string `json:"key"`    // as in a file: listeners[0].backend
	Value  string `json:"value"`  // secrets masked
	Origin string `json:"origin"` // FILE:LINE, flag --NAME, -D NAME, -D NAME in TLSD_OPTS, environment NAME, default
}

// Load reads everything that in names. Every error is the operator's to mend
// and says what is wrong, where it was given and what to write instead.
func Load(in Input) (*Effective, error) {
	d, err := newDraft(in.File())
	if err != nil {
		return nil, err
	}
	if err := d.overlay(in); err != nil {
		return nil, err
	}
	if err := d.finish(); err != nil {
		return nil, err
	}
	return d.effective(in)
}

// overlay lays over the file what was given elsewhere, lowest first.
func (d *draft) overlay(in Input) error {
	environ := in.Environ
	if environ == nil {
		environ = os.Environ()
	}
	env := environment(environ)
	if err := d.environment(env); err != nil {
		return err
	}
	opts, notes, err := parseOpts(env[EnvOpts])
	if err != nil {
		return fmt.Errorf("environment %s: %w", EnvOpts, err)
	}
	d.notes = append(d.notes, notes...)
	if err := d.properties(opts, " in "+EnvOpts); err != nil {
		return err
	}
	defs, err := parseProperties(in.Flags.all("define"))
	if err != nil {
		return err
	}
	if err := d.properties(defs, ""); err != nil {
		return err
	}
	return in.Flags.apply(d)
}

// environment returns the variables that are tlsd's by name.
func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, envPrefix) {
			env[name] = value
		}
	}
	return env
}

func (d *draft) environment(env map[string]string) error {
	if name := env[EnvKeyManager]; name != "" {
		if err := d.setKeyManager(name, "environment "+EnvKeyManager); err != nil {
			return err
		}
	}
	pw, set := env[EnvKeystorePassword]
	if d.emptyPassword = set && pw == ""; pw != "" {
		d.setStorePassword(pw, "environment "+EnvKeystorePassword)
	}
	known := []string{EnvKeyManager, EnvKeystorePassword, EnvOpts}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(known, name) && !ofService(name) {
			d.note("environment %s has no effect: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// ofService reports whether Kubernetes sets a variable where a service is called
// tlsd.
func ofService(name string) bool {
	return name == envPrefix+"PORT" || strings.HasPrefix(name, envPrefix+"PORT_") || strings.HasPrefix(name, envPrefix+"SERVICE_")
}

// LoadPlugins reads as Load does and returns the external plugins only, whatever
// else may be missing.
func LoadPlugins(in Input) ([]framework.Plugin, error) {
	d, err := newDraft(in.File())
	if err != nil {
		return nil, err
	}
	if err := d.overlay(in); err != nil {
		return nil, err
	}
	return d.plugins(in.Tiers)
}
