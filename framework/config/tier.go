// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Builtin is a tier that tlsd comes with, and the build tag that leaves it out.
type Builtin struct{ Name, Tag string }

// Builtins lists the tiers that tlsd comes with, in the order in which one of
// them becomes the default.
func Builtins() []Builtin {
	return []Builtin{{"pkixcached", "no_pkixcached"}, {"pkix", "no_pkix"}, {"sunx509", "no_sunx509"}}
}

func (d *draft) setKeyManager(v, from string) error {
	d.KeyManager = v
	d.origins["keymanager"] = from
	return nil
}

// setAlgorithm takes a JVM's name of a key manager algorithm, or a tier's.
func (d *draft) setAlgorithm(v, from string) error {
	switch strings.ToLower(v) {
	case "sunx509":
		v = "sunx509"
	case "pkix", "newsunx509":
		v = "pkix"
	}
	return d.setKeyManager(v, from)
}

func (d *draft) setCertChecking(v, from string) error {
	if v != "true" && v != "false" {
		return fmt.Errorf("%s: %q is neither true nor false", from, v)
	}
	d.certChecking = given[string]{[]string{v}, from}
	return nil
}

// tier decides which key manager runs, and whether it is an external plugin.
func (d *draft) tier(tiers []keymanager.Tier) (name string, external bool, err error) {
	name = d.KeyManager
	if name == "" {
		if name = defaultTier(tiers); name == "" {
			return "", false, fmt.Errorf("no key manager in this build: name one with --plugin NAME=PATH and --keymanager NAME")
		}
		d.KeyManager = name
	}
	if path, ok := strings.CutPrefix(name, "unix:"); ok {
		return "unix:" + absolute(path), true, d.checkFront(path)
	}
	external = slices.ContainsFunc(d.Plugins, func(p plugin) bool { return p.Name == name })
	if !external && !hasTier(tiers, name) {
		return "", false, d.wrong("keymanager", "%w", d.noTier(name, tiers))
	}
	d.notePlugins(name)
	return name, external, d.judgeCertChecking(name)
}

func defaultTier(tiers []keymanager.Tier) string {
	for _, b := range Builtins() {
		if hasTier(tiers, b.Name) {
			return b.Name
		}
	}
	return ""
}

func hasTier(tiers []keymanager.Tier, name string) bool {
	return slices.ContainsFunc(tiers, func(t keymanager.Tier) bool { return t.Name == name })
}

// noTier says why there is no tier of that name.
func (d *draft) noTier(name string, tiers []keymanager.Tier) error {
	for _, b := range Builtins() {
		if b.Name == name {
			return fmt.Errorf("%q is not in this build (built with %s); build without the tag, or name a plugin executable", name, b.Tag)
		}
	}
	var known []string
	for _, t := range tiers {
		known = append(known, t.Name)
	}
	for _, p := range d.Plugins {
		known = append(known, p.Name)
	}
	hint := ""
	if near := nearest(name, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("there is no key manager %q%s (there are: %s; others with --plugin NAME=PATH)", name, hint, strings.Join(known, ", "))
}

// notePlugins tells of a plugin on the command line that is not the key manager:
// who gives one there means it to be used.
func (d *draft) notePlugins(chosen string) {
	for i, p := range d.Plugins {
		at := fmt.Sprintf("plugins[%d].path", i)
		if p.Name != chosen && strings.HasPrefix(d.origin(at), "flag") {
			d.note("plugin %q is not used: the key manager is %q; choose it with --keymanager %s", p.Name, chosen, p.Name)
		}
	}
}

// judgeCertChecking holds JDK 26's switch against the tier.
func (d *draft) judgeCertChecking(tier string) error {
	c := d.certChecking
	switch {
	case c.from == "":
	case tier != "sunx509":
		d.note("%s has no effect: the key manager is %q", c.from, tier)
	case c.of(0) == "true":
		return fmt.Errorf("%s: true: sunx509 checks no certificates; use --keymanager pkix", c.from)
	}
	return nil
}
