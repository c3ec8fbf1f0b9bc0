// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// Endpoint is the configuration of a key process that fronts connect to, and
// where it came from.
type Endpoint struct {
	Tier      keymanager.Tier
	Keystores []keymanager.Source
	Options   keymanager.Options
	Socket    string                 // path, absolute
	Users     []int                  // that are admitted, by number
	Trust     []framework.TrustStore // that fronts may ask for

	Notes     []string          // as in Effective
	Values    []Value           // as in Effective
	LogLevel  string            // as in Effective
	LogFormat string            // as in Effective
	LogLevels map[string]string // by logger name
}

const flagAllowUser = "allow-user"

// RegisterEndpoint defines the flags of an endpoint in fs, for LoadEndpoint.
func (f *Flags) RegisterEndpoint(fs *pflag.FlagSet) { f.register(fs, endpointFlagDefs()) }

// endpointFlagDefs are the flags that describe an endpoint: those of a front
// that are about keystores, and its own.
func endpointFlagDefs() []flagDef {
	shared := []string{"config", "keystore", "keystore-type", "keystore-password-file", "key-password-file",
		"define", "log-level", "log-format", "debug"}
	defs := []flagDef{
		{name: "listen", set: onListener("listen", text(func(l *listener) *string { return &l.Listen })),
			usage: "`unix:PATH` of the socket that fronts connect to"},
		{name: "keymanager", set: one((*draft).setKeyManager), usage: "`TIER` that chooses and signs (default pkixcached)"},
		{name: flagAllowUser, many: true, set: (*draft).setAllowUser,
			usage: "`USER`, by name or number, whose processes may use the keys; repeatable"},
		{name: "client-ca", many: true, set: (*draft).setTrust,
			usage: "`PATH` of a trust store that fronts may ask for, by the same path; repeatable"},
		{name: "client-ca-password-file", many: true, set: (*draft).setTrustPasswords,
			usage: "`PATH` of a file with the trust store's password; one for all, or one for each"},
	}
	for _, def := range flagDefs() {
		if slices.Contains(shared, def.name) {
			defs = append(defs, def)
		}
	}
	return defs
}

func (d *draft) setAllowUser(values []string, from string) error {
	d.AllowUser, d.dropped = values, append(d.dropped, "allow_user")
	d.origins["allow_user"] = from
	return nil
}

func (d *draft) setTrust(values []string, from string) error {
	d.trust = given[string]{values, from}
	return nil
}

func (d *draft) setTrustPasswords(values []string, from string) error {
	d.trustPasswords = given[string]{values, from}
	return nil
}

// LoadEndpoint reads, as Load does, what a key process needs that fronts connect
// to: of a file, all about keystores and tiers, allow_user, and of one listener
// its unix:PATH and client_ca. Anything else in it is a front's and an error.
func LoadEndpoint(in Input) (*Endpoint, error) {
	d, err := newDraft(in.File())
	if err != nil {
		return nil, err
	}
	if err := d.overlay(in); err != nil {
		return nil, err
	}
	if err := d.oneListener(); err != nil {
		return nil, err
	}
	if err := d.finishRest(); err != nil {
		return nil, err
	}
	if err := d.checkLog(); err != nil {
		return nil, err
	}
	return d.endpoint(in.Tiers)
}

// oneListener lays flags and properties over the one listener, and refuses what
// a key process doesn't do.
func (d *draft) oneListener() error {
	if len(d.Listeners) > 1 {
		return d.wrong("listeners[1].listen", "an endpoint has one socket; leave one listener, with listen: unix:PATH")
	}
	if len(d.Listeners) == 0 {
		d.Listeners = []listener{{}}
	}
	for _, o := range append(slices.Clone(d.perEvery), d.perListener...) {
		d.origins["listeners[0]."+o.key] = o.from
		if err := o.set(&d.Listeners[0]); err != nil {
			return fmt.Errorf("%s: %w", o.from, err)
		}
	}
	for _, v := range d.values() {
		switch {
		case v.Origin == OriginDefault || !ofFront(v.Key):
		case ofChild(v.Key):
			return d.wrong(v.Key, "has no use with an endpoint; leave it out")
		case strings.HasPrefix(v.Origin, "-D "): // a JVM's options stay together
			d.note("%s has no effect: it is the front's", v.Origin)
		default:
			return d.wrong(v.Key, "is the front's; leave it out for tlsd keymanager serve")
		}
	}
	return nil
}

// ofFront reports whether a key of a file means nothing to an endpoint.
func ofFront(key string) bool {
	if field, ok := strings.CutPrefix(key, "listeners[0]."); ok {
		return field != "listen" && !strings.HasPrefix(field, "client_ca")
	}
	list, _, _ := strings.Cut(key, "[")
	top, _, _ := strings.Cut(list, ".")
	return slices.Contains([]string{"plugins", "run_dir", "drain", "plugin_wait", "limits", "isolation", "metrics", "admin"}, top)
}

// endpoint makes the result of a draft that is finished.
func (d *draft) endpoint(tiers []keymanager.Tier) (*Endpoint, error) {
	if strings.HasPrefix(d.KeyManager, "unix:") {
		return nil, d.wrong("keymanager", "%q is an endpoint, and so will this be; name a tier that it runs", d.KeyManager)
	}
	name, _, err := d.tier(tiers)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tiers, func(t keymanager.Tier) bool { return t.Name == name })
	if i < 0 {
		return nil, d.wrong("keymanager", "%q is no tier of this program: an endpoint runs one of those", name)
	}
	if len(d.Keystores) == 0 {
		return nil, fmt.Errorf("no keystore: give --keystore PATH, or keystores in a file with --config")
	}
	e := &Endpoint{
		Tier: tiers[i], Keystores: d.sources(), Options: d.options(), Notes: d.notes, Values: d.values(),
		LogLevel: d.Log.Level, LogFormat: d.Log.Format, LogLevels: d.levels(),
	}
	e.Options.Aliases = nil // fronts demand theirs themselves
	if e.Socket, err = d.socket(); err != nil {
		return nil, err
	}
	if e.Users, err = d.users(); err != nil {
		return nil, err
	}
	e.Trust, err = d.trustStores()
	return e, err
}

func (d *draft) socket() (string, error) {
	path, ok := strings.CutPrefix(d.Listeners[0].Listen, "unix:")
	if !ok || path == "" {
		return "", d.wrong("listeners[0].listen", "an endpoint is reached by a socket of this machine: give --listen unix:PATH")
	}
	return absolute(path), nil
}

// users returns the numbers of the users that are admitted.
func (d *draft) users() ([]int, error) {
	if len(d.AllowUser) == 0 {
		return nil, fmt.Errorf("nobody may use the keys: name the front's user with --%s USER", flagAllowUser)
	}
	var uids []int
	for _, name := range d.AllowUser {
		uid, err := strconv.ParseUint(name, 10, 31)
		if err != nil {
			u, lookupErr := user.Lookup(name)
			if lookupErr != nil {
				return nil, d.wrong("allow_user", "there is no user %q here; give the number, if only another container knows the name", name)
			}
			if uid, err = strconv.ParseUint(u.Uid, 10, 31); err != nil {
				return nil, d.wrong("allow_user", "user %q: its number is %q", name, u.Uid)
			}
		}
		uids = append(uids, int(uid))
	}
	return uids, nil
}

// trustStores returns those that flags name, or else the listener's.
func (d *draft) trustStores() ([]framework.TrustStore, error) {
	l := &d.Listeners[0]
	var stores []framework.TrustStore
	for _, path := range d.trust.values {
		stores = append(stores, framework.TrustStore{Path: absolute(path)})
	}
	if d.trust.from == "" && l.ClientCA != "" {
		stores = []framework.TrustStore{{
			Path: absolute(l.ClientCA), Type: l.ClientCAType,
			Password: keymanager.PasswordRef{File: absolute(l.ClientCAPasswordFile), Value: l.ClientCAPassword},
		}}
	}
	n := len(stores)
	if passwords := len(d.trustPasswords.values); passwords > 1 && passwords != n || passwords > 0 && n == 0 {
		return nil, fmt.Errorf("%s: given %d times beside %d trust stores; give one for all, or one for each in their order", d.trustPasswords.from, passwords, n)
	}
	for i := range stores {
		if d.trustPasswords.from != "" {
			stores[i].Password = keymanager.PasswordRef{File: absolute(d.trustPasswords.of(i))}
		}
	}
	return stores, nil
}
