// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Flags are the flags that describe a configuration.
type Flags struct {
	defs   []flagDef
	values map[string]*flagValue
}

// flagDef is one flag: what it is called and how it is laid over a draft.
type flagDef struct {
	name, short string
	usage       string // the value's name in back quotes, as pflag has it
	many, plain bool   // may be repeated; takes no value
	set         setter
}

func flagDefs() []flagDef {
	return []flagDef{
		{name: "config", usage: "configuration `FILE` (YAML, TOML or JSON)"},
		{name: "keymanager", set: one((*draft).setKeyManager),
			usage: "key manager `NAME`: a tier, a plugin, or unix:PATH of an endpoint (default pkixcached)"},
		{name: "keystore", many: true, set: (*draft).setKeystores,
			usage: "keystore `PATH`, or CERT,KEY in PEM; repeatable"},
		{name: "keystore-type", set: one((*draft).setStoreType),
			usage: "auto, pkcs12, jks, jceks or pem: the `TYPE` of every keystore (default auto)"},
		{name: "keystore-password-file", many: true, set: (*draft).setPasswordFiles,
			usage: "`PATH` of a file with the keystore's password; one for all, or one for each"},
		{name: "key-password-file", many: true, set: (*draft).setKeyPasswordFiles,
			usage: "`PATH` of a file with the keys' password, where it is not the keystore's"},
		{name: "listen", set: onListener("listen", text(func(l *listener) *string { return &l.Listen })),
			usage: "`ADDRESS` to serve on: host:port or unix:PATH (default 127.0.0.1:8443)"},
		{name: "backend", set: onListener("backend", text(func(l *listener) *string { return &l.Backend })),
			usage: "`URL` to forward to: http, https, h2c, http+unix (HTTP), tcp, tls, unix (bytes), or builtin:hello (default)"},
		{name: "alias", set: onListener("alias", text(func(l *listener) *string { return &l.Alias })),
			usage: "serve the entry of this `NAME` for every server name"},
		{name: "client-auth", set: onListener("client_auth", text(func(l *listener) *string { return &l.ClientAuth })),
			usage: "client certificates: `WHEN` is none, optional or require (default none)"},
		{name: "client-ca", set: onListener("client_ca", setTrustStore),
			usage: "`PATH` of a trust store (PEM, PKCS#12 or JKS) for client certificates"},
		{name: "client-ca-password-file",
			set:   onListener("client_ca_password_file", setTrustPasswordFile),
			usage: "`PATH` of a file with the trust store's password"},
		{name: "client-crl", set: onListener("client_crl", text(func(l *listener) *string { return &l.ClientCRL })),
			usage: "`PATH` of a file with the revocation lists (CRLs) of the client CAs"},
		{name: "metrics", set: one((*draft).setMetrics),
			usage: "`ADDRESS` of /healthz, /readyz and /metrics: host:port or unix:PATH (default off)"},
		{name: "admin", set: one((*draft).setAdmin),
			usage: "`ADDRESS` of the same and of what shows more or changes something: loopback or unix:PATH (default off)"},
		{name: "define", short: "D", many: true,
			usage: "a JVM operator's property, as `NAME=VALUE`; repeatable"},
		{name: "plugin", many: true, set: (*draft).setPlugins,
			usage: "external key manager, as `NAME=PATH[@sha256:HEX]`; repeatable"},
		{name: "plugin-setting", many: true, set: (*draft).setPluginSettings,
			usage: "a setting of a plugin, as `NAME.KEY=VALUE`; repeatable"},
		{name: "demo", plain: true, set: one((*draft).setDemo),
			usage: "serve with a throw-away keystore, even where others can connect"},
		{name: "log-level", set: one((*draft).setLogLevel),
			usage: "least `LEVEL` that is logged: debug, info, warn, error or off (default info)"},
		{name: "log-format", set: one((*draft).setLogFormat),
			usage: "`FORMAT` of the log: json or console (default console on a terminal, else json)"},
		{name: "debug", many: true, set: (*draft).setDebug,
			usage: "log `LOGGER[,LOGGER]` at debug: keymanager, server, access"},
	}
}

// Register defines the flags in fs.
func (f *Flags) Register(fs *pflag.FlagSet) { f.register(fs, flagDefs()) }

func (f *Flags) register(fs *pflag.FlagSet, defs []flagDef) {
	f.defs, f.values = defs, map[string]*flagValue{}
	for _, def := range defs {
		v := &flagValue{many: def.many, plain: def.plain}
		f.values[def.name] = v
		flag := fs.VarPF(v, def.name, def.short, def.usage)
		if def.plain {
			flag.NoOptDefVal = "true"
		}
	}
}

// FlagError explains an error of fs.Parse: a flag that was mistyped, or is of
// another command.
func FlagError(fs *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if letters := unknown.GetSpecifiedShortnames(); strings.HasPrefix(letters, "X") {
		return fmt.Errorf("-%s: a JVM's option; those go into %s, where they are of no harm", letters, EnvOpts)
	}
	var known []string
	fs.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if name := unknown.GetSpecifiedName(); name == flagAllowUser {
		return fmt.Errorf("flag --%s: is of tlsd keymanager serve", name)
	}
	if near := nearest(unknown.GetSpecifiedName(), known); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// apply lays the flags that were given over a draft.
func (f *Flags) apply(d *draft) error {
	if f == nil {
		return nil
	}
	for _, def := range f.defs {
		if values := f.all(def.name); len(values) > 0 && def.set != nil {
			if err := def.set(d, values, "flag --"+def.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// all returns the values of a flag in the order given.
func (f *Flags) all(name string) []string {
	if f == nil || f.values[name] == nil {
		return nil
	}
	return f.values[name].values
}

// one returns the value of a flag that is given once, or "".
func (f *Flags) one(name string) string {
	if values := f.all(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// flagValue is a pflag.Value that knows what was given and refuses a second
// value where only one can count.
type flagValue struct {
	values      []string
	many, plain bool
}

func (v *flagValue) Set(s string) error {
	if !v.many && len(v.values) > 0 {
		return errors.New("it is given twice")
	}
	if s == "" {
		return errors.New("it is empty")
	}
	v.values = append(v.values, s)
	return nil
}

func (v *flagValue) String() string { return "" } // pflag would show it as the default

func (v *flagValue) Type() string {
	if v.plain {
		return "bool"
	}
	return "string"
}
