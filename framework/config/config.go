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
	"os"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// Names of the environment that Load reads. There are no others.
const (
	EnvKeyManager       = "TLSD_KEYMANAGER"
	EnvKeystorePassword = "TLSD_KEYSTORE_PASSWORD" // a variable's name, no secret
	EnvOpts             = "TLSD_OPTS"
)

// Input is what a configuration is made of. The zero value gives the defaults.
type Input struct {
	Flags  *Flags                   // nil: none were given
	Getenv func(name string) string // nil: os.Getenv; empty is not set
	Tiers  []keymanager.Tier        // built into this program
}

// Effective is a configuration and where it came from.
type Effective struct {
	framework.Config

	File   string   // the configuration file; empty: none
	Values []Value  // every key with its value and origin, in the order of the reference; of hosts what they state
	Notes  []string // what has no effect, or would surprise: to be logged as warnings

	// Demo asks for a throw-away keystore to be made and put into Keystores.
	Demo bool

	LogLevel        string   // debug, info, warn, error or off
	LogLevelDefault bool     // nobody asked for LogLevel
	LogFormat       string   // json, console, or empty: by the terminal
	Debug           []string // loggers at debug
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
	d, err := newDraft(in.Flags.one("config"))
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
	getenv := in.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if err := d.environment(getenv); err != nil {
		return err
	}
	opts, notes, err := parseOpts(getenv(EnvOpts))
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

func (d *draft) environment(getenv func(string) string) error {
	if name := getenv(EnvKeyManager); name != "" {
		if err := d.setKeyManager(name, "environment "+EnvKeyManager); err != nil {
			return err
		}
	}
	if pw := getenv(EnvKeystorePassword); pw != "" {
		d.setStorePassword(pw, "environment "+EnvKeystorePassword)
	}
	return nil
}

// LoadPlugins reads as Load does and returns the external plugins only, whatever
// else may be missing.
func LoadPlugins(in Input) ([]framework.Plugin, error) {
	d, err := newDraft(in.Flags.one("config"))
	if err != nil {
		return nil, err
	}
	if err := d.overlay(in); err != nil {
		return nil, err
	}
	return d.plugins(in.Tiers)
}
