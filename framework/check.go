// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/choose"
)

// logger returns c.Log, or one that drops everything.
func (c *Config) logger() *zap.Logger {
	if c.Log == nil {
		return zap.NewNop()
	}
	return c.Log
}

// checkKeys finds mistakes in what a key manager is made of.
func (c *Config) checkKeys() error {
	var seen []string
	for i, t := range c.Tiers {
		if t.Name == "" || t.Open == nil {
			return fmt.Errorf("framework.Config: Tiers[%d]: a tier needs Name and Open", i)
		}
		if slices.Contains(seen, t.Name) {
			return fmt.Errorf("framework.Config: tier %q is there twice", t.Name)
		}
		seen = append(seen, t.Name)
	}
	for i, p := range c.Plugins {
		if p.Name == "" || p.Path == "" {
			return fmt.Errorf("framework.Config: Plugins[%d]: a plugin needs Name and Path", i)
		}
		if slices.Contains(seen, p.Name) {
			return fmt.Errorf("plugin %q has the name of another plugin or of a built-in tier: give it a name of its own", p.Name)
		}
		seen = append(seen, p.Name)
	}
	if c.InProcess && c.Executable != "" {
		return errors.New("framework.Config: InProcess and Executable exclude each other: set one")
	}
	for i, s := range c.Keystores {
		if len(s.Paths) == 0 {
			return fmt.Errorf("framework.Config: Keystores[%d]: no path", i)
		}
	}
	if err := c.Isolation.check(); err != nil {
		return err
	}
	return c.checkDurations()
}

// constraints returns those of the Options, which have to leave a connection
// something.
func (c *Config) constraints() (*choose.Constraints, error) {
	parsed, err := choose.ParseConstraints(c.Options.Constraints, c.Options.JDKCompat)
	if err != nil {
		return nil, err // names property and position
	}
	return parsed, constrain(new(tls.Config), parsed)
}

func (c *Config) checkDurations() error {
	for name, d := range map[string]time.Duration{
		"PluginWait": c.PluginWait, "SignTimeout": c.SignTimeout,
		"Limits.HandshakeTimeout": c.Limits.HandshakeTimeout, "Drain": c.Drain, "DrainDelay": c.DrainDelay,
		"Limits.Idle": c.Limits.Idle, "Limits.Lifetime": c.Limits.Lifetime,
	} {
		if d < 0 {
			return fmt.Errorf("framework.Config: %s is negative: set 0 for the default, or a duration", name)
		}
	}
	return nil
}
