// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// setPlugins replaces the file's plugins. Each value is NAME=PATH or
// NAME=PATH@sha256:HEX.
func (d *draft) setPlugins(values []string, from string) error {
	d.Plugins, d.dropped = nil, append(d.dropped, "plugins")
	for i, v := range values {
		name, path, found := strings.Cut(v, "=")
		if !found || name == "" || path == "" {
			return fmt.Errorf("%s: %q: write NAME=PATH or NAME=PATH@sha256:HEX", from, v)
		}
		p := plugin{Name: name, Path: path}
		at := fmt.Sprintf("plugins[%d].", i)
		if n := strings.LastIndex(path, "@sha256:"); n >= 0 {
			p.Path, p.SHA256 = path[:n], path[n+len("@sha256:"):]
			d.origins[at+"sha256"] = from
		}
		if n := strings.LastIndex(p.Path, "@"); n >= 0 && isSHA256(p.Path[n+1:]) {
			return fmt.Errorf("%s: %q: before a checksum stands its kind: write @sha256:%s", from, v, p.Path[n+1:])
		}
		d.Plugins = append(d.Plugins, p)
		d.origins[at+"name"], d.origins[at+"path"] = from, from
	}
	return nil
}

// setPluginSettings takes NAME.KEY=VALUE. A value that is JSON is taken as that
// (3, true, ["a"], "0123"), any other as text. No value is shown in an error:
// it may be a PIN.
func (d *draft) setPluginSettings(values []string, from string) error {
	for _, v := range values {
		key, value, found := strings.Cut(v, "=")
		name, key, dotted := strings.Cut(key, ".")
		if !found || !dotted || name == "" || key == "" {
			return fmt.Errorf("%s: write NAME.KEY=VALUE", from)
		}
		i := slices.IndexFunc(d.Plugins, func(p plugin) bool { return p.Name == name })
		if i < 0 {
			return fmt.Errorf("%s %s.%s: there is no plugin %q; give it with --plugin %s=PATH", from, name, key, name, name)
		}
		if d.Plugins[i].Settings == nil {
			d.Plugins[i].Settings = map[string]any{}
		}
		d.Plugins[i].Settings[key] = jsonOrText(value)
		d.origins[fmt.Sprintf("plugins[%d].settings", i)] = from
	}
	return nil
}

func isSHA256(s string) bool { return regexp.MustCompile("^[0-9a-fA-F]{64}$").MatchString(s) }

func jsonOrText(s string) any {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return s
}

func (d *draft) plugins(tiers []keymanager.Tier) ([]framework.Plugin, error) {
	var plugins []framework.Plugin
	names := map[string]bool{}
	for i, p := range d.Plugins {
		at := fmt.Sprintf("plugins[%d]", i)
		switch {
		case p.Name == "" || p.Path == "":
			return nil, d.wrong(at, "needs name and path")
		case names[p.Name]:
			return nil, d.wrong(at+".name", "%q is given twice", p.Name)
		case hasTier(tiers, p.Name):
			return nil, d.wrong(at+".name", "%q is the name of a tier that is built in; give the plugin another", p.Name)
		case p.SHA256 != "" && !isSHA256(p.SHA256):
			return nil, d.wrong(at+".sha256", "%q is no SHA-256; it has 64 hexadecimal digits, as sha256sum %s prints", p.SHA256, p.Path)
		}
		names[p.Name] = true
		out := framework.Plugin{Name: p.Name, Path: absolute(p.Path), SHA256: strings.ToLower(p.SHA256)}
		if p.Settings != nil {
			raw, err := json.Marshal(p.Settings)
			if err != nil {
				return nil, d.wrong(at+".settings", "%w", err)
			}
			out.Settings = raw
		}
		plugins = append(plugins, out)
	}
	return plugins, nil
}
