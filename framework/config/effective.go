// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

func (d *draft) setCertPath(v, from string) error {
	d.Constraints.CertPath = &v
	d.origins["constraints.certpath"] = from
	return nil
}

func (d *draft) setTLSConstraints(v, from string) error {
	d.Constraints.TLS = &v
	d.origins["constraints.tls"] = from
	return nil
}

func setTrustPasswordFile(l *listener, v string) error {
	l.ClientCAPasswordFile, l.ClientCAPassword = v, nil
	return nil
}

// effective makes the result of a draft that is finished.
func (d *draft) effective(in Input) (*Effective, error) {
	if err := d.checkLog(); err != nil {
		return nil, err
	}
	if err := d.checkIsolation(); err != nil {
		return nil, err
	}
	tier, external, err := d.tier(in.Tiers)
	if err != nil {
		return nil, err
	}
	if len(d.AllowUser) > 0 {
		return nil, d.wrong("allow_user", "is of tlsd keymanager serve; leave it out here")
	}
	listeners, err := d.listeners()
	if err != nil {
		return nil, err
	}
	if err := d.checkWeb(); err != nil {
		return nil, err
	}
	plugins, err := d.plugins(in.Tiers)
	if err != nil {
		return nil, err
	}
	demo, err := d.wantsDemo(external)
	if err != nil {
		return nil, err
	}
	if demo {
		d.noteForgotten()
	}
	cfg := framework.Config{
		KeyManager: tier, Tiers: in.Tiers, Plugins: plugins,
		Keystores: d.sources(), Options: d.options(), Listeners: listeners,
		RunDir: absolute(d.RunDir), PluginWait: d.PluginWait, Limits: d.Limits.framework(),
		DrainDelay: time.Duration(d.Drain.Delay), Drain: d.Drain.Timeout,
		Isolation: framework.Isolation(d.Isolation),
		LogLevels: d.levels(),
	}
	return &Effective{
		Config: cfg, File: d.file, Blank: d.doc == nil || len(d.doc.fields) == 0, Values: d.values(), Notes: d.notes, Demo: demo,
		LogLevel: d.Log.Level, LogLevelDefault: d.origin("log.level") == OriginDefault,
		LogFormat: d.Log.Format, Debug: d.Log.Debug,
		Metrics: d.Metrics.Listen, Admin: d.Admin.Listen, Pprof: d.Admin.Pprof,
	}, nil
}

func (l *limits) framework() framework.Limits {
	return framework.Limits{
		HandshakeTimeout: l.HandshakeTimeout,
		Connections:      l.Connections, ConnectionsPerIP: l.ConnectionsPerIP, Handshakes: l.Handshakes,
		Idle: time.Duration(l.Idle), Lifetime: time.Duration(l.Lifetime),
	}
}

func (d *draft) checkIsolation() error {
	switch framework.Isolation(d.Isolation) {
	case framework.IsolationReport, framework.IsolationRequire:
		return nil
	}
	return d.wrong("isolation", "%q is neither report nor require", d.Isolation)
}

func (d *draft) options() keymanager.Options {
	return keymanager.Options{
		Constraints:   keymanager.Constraints{CertPath: d.Constraints.CertPath, TLS: d.Constraints.TLS},
		DefaultAlias:  d.DefaultAlias,
		Aliases:       d.aliases(),
		JDKCompat:     d.JDKCompat,
		ExpiryWarning: d.ExpiryWarning, Poll: d.ReloadPoll, Iterations: d.KeystoreLimits.Iterations,
	}
}

// wantsDemo decides whether a throw-away keystore is made: with --demo, or
// where nobody configured anything and nobody else can connect. A plugin of
// one's own may hold its keys elsewhere and is given none unasked.
func (d *draft) wantsDemo(external bool) (bool, error) {
	switch {
	case d.demo && len(d.Keystores) > 0:
		return false, fmt.Errorf("--demo makes a throw-away keystore, and %s is given (%s); leave out one of them", d.Keystores[0].Path[0], d.origin("keystores[0].path"))
	case d.demo:
		return true, nil
	case len(d.Keystores) > 0 || external:
		return false, nil
	case d.file != "":
		return false, fmt.Errorf("no keystore: set keystores in %q, or give --keystore PATH, or try --demo", d.file)
	}
	for i, l := range d.Listeners {
		if !loopback(l.Listen) {
			return false, d.wrong(fmt.Sprintf("listeners[%d].listen", i), "%w",
				errors.New("no keystore for a listener that others can reach: give --keystore PATH, or try --demo"))
		}
	}
	return true, nil
}

// noteForgotten tells of what was given for a keystore that is missing.
func (d *draft) noteForgotten() {
	for _, from := range []string{d.passwords.from, d.keyPasswords.from, d.storeType.from} {
		if from != "" {
			d.note("no keystore is configured: serving a throw-away certificate; %s has no effect without --keystore PATH", from)
			return
		}
	}
}
