// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

// run is how the chosen key manager is started: a tier of this program, an
// external plugin, or an endpoint that somebody else runs.
type run struct {
	name   string
	tier   *keymanager.Tier // built in
	plugin *Plugin          // external
	socket string           // of an endpoint
}

// defaultTiers are what is run where no tier is named, the first that there is.
func defaultTiers() []string { return []string{"pkixcached", "pkix", "sunx509"} }

// pick chooses among built-in tiers and plugins.
func (c *Config) pick() (run, error) {
	name := c.KeyManager
	if name == "" {
		var err error
		if name, err = c.defaultName(); err != nil {
			return run{}, err
		}
	}
	if path, ok := strings.CutPrefix(name, "unix:"); ok {
		return run{name: name, socket: path}, c.checkEndpoint(path)
	}
	for i := range c.Plugins {
		if c.Plugins[i].Name == name {
			return run{name: name, plugin: &c.Plugins[i]}, nil
		}
	}
	for i := range c.Tiers {
		if c.Tiers[i].Name == name {
			return run{name: name, tier: &c.Tiers[i]}, nil
		}
	}
	if c.Executable != "" {
		return run{name: name}, nil
	}
	return run{}, fmt.Errorf("key manager %q is not known: there is %s", name, listed(c.names()))
}

// checkEndpoint refuses what an endpoint has for itself.
func (c *Config) checkEndpoint(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("framework.Config: KeyManager %q: write unix:PATH", c.KeyManager)
	case len(c.Keystores) > 0 || c.InProcess || c.Executable != "":
		return fmt.Errorf("framework.Config: KeyManager %q is run by somebody else, with keystores of its own: leave out Keystores, InProcess and Executable", c.KeyManager)
	}
	return nil
}

func (c *Config) defaultName() (string, error) {
	names := c.names()
	if len(names) == 1 {
		return names[0], nil
	}
	for _, name := range defaultTiers() {
		if slices.Contains(names, name) {
			return name, nil
		}
	}
	if c.Executable != "" {
		return defaultTiers()[0], nil
	}
	if len(names) == 0 {
		return "", errors.New("no key manager: set Tiers or Plugins of framework.Config, and KeyManager where it isn't to be the default")
	}
	return "", fmt.Errorf("no key manager is chosen: set KeyManager to one of %s", listed(names))
}

func (c *Config) names() []string {
	var names []string
	for _, t := range c.Tiers {
		names = append(names, t.Name)
	}
	for _, p := range c.Plugins {
		names = append(names, p.Name)
	}
	return names
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// tierName is how m is called in the log: an endpoint's tier is known by itself.
func (r run) tierName(m plugin.Manager) string {
	if r.socket != "" {
		return m.Describe().Name
	}
	return r.name
}

// start runs the key manager and returns when it is ready.
func (r run) start(ctx context.Context, c *Config, after uint64, log *zap.Logger) (plugin.Manager, error) {
	if r.socket != "" {
		return plugin.Dial(ctx, r.socket, plugin.DialOptions{
			Aliases: c.Options.Aliases, PluginWait: c.PluginWait, Log: log,
		})
	}
	spec := plugin.Spec{
		Sources:   c.Keystores,
		Options:   c.Options,
		LogLevels: c.LogLevels,
		Files:     c.trustFiles(),
		After:     after,
	}
	cmd := plugin.Command{Tier: r.name, Path: c.Executable}
	if c.InProcess && r.plugin != nil {
		return nil, fmt.Errorf("plugin %q can't run in this process: leave InProcess out, or name one of Tiers", r.name)
	}
	if r.plugin != nil {
		spec.Settings = r.plugin.Settings
		cmd.Path, cmd.SHA256 = r.plugin.Path, r.plugin.SHA256
	} else if c.InProcess && r.tier != nil {
		spec.Log = log
		return plugin.InProcess(ctx, *r.tier, spec)
	}
	return plugin.Start(ctx, cmd, spec, plugin.HostOptions{RunDir: c.RunDir, PluginWait: c.PluginWait, Log: log})
}

// trustFiles lists what the key process will be asked to read besides its
// keystores.
func (c *Config) trustFiles() []string {
	var files []string
	for i := range c.Listeners {
		for _, l := range c.Listeners[i].sites() {
			for _, t := range []TrustStore{l.ClientCA, l.BackendTLS.CA} {
				files = append(files, t.Path, t.Password.File)
			}
		}
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(f string) bool { return f == "" })
}
