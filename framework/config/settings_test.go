// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework"
)

func TestSplitWords(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "  ", nil},
		{"plain", "-Xmx1g  -Da=b\n-Dc=d", []string{"-Xmx1g", "-Da=b", "-Dc=d"}},
		{"double", `-Da="b c"`, []string{"-Da=b c"}},
		{"single", `'-Da=b "c"'`, []string{`-Da=b "c"`}},
		{"escaped_blank", `-Da=b\ c`, []string{"-Da=b c"}},
		{"escaped_quote", `-Da="b\"c"`, []string{`-Da=b"c`}},
		{"backslash_in_quotes", `-Da="C:\x"`, []string{`-Da=C:\x`}},
		{"nothing_expanded", `-Da=$HOME`, []string{"-Da=$HOME"}},
		{"empty_word", `a "" b`, []string{"a", "", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := splitWords(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A password from TLSD_OPTS arrives whole, dollar signs and all.
func TestPasswordFromOpts(t *testing.T) {
	eff := input{env: map[string]string{EnvOpts: `-Djavax.net.ssl.keyStore=a.p12 -D 'javax.net.ssl.keyStorePassword=a $b #c'`}}.mustLoad(t)
	if got := string(*eff.Keystores[0].Store.Value); got != "a $b #c" {
		t.Error("the password was changed on the way")
	}
}

const whole = `
keymanager: pkix
keystores:
  - path: /k/a.p12
    type: pkcs12
    password_file: /k/a.pass
    key_passwords: [{alias: Web, file: /k/web.pass}]
  - {path: [/k/tls.crt, /k/tls.key], key_password_file: /k/key.pass}
listeners:
  - listen: 0.0.0.0:443
    backend: https://app:8443
    backend_tls: {ca: /k/ca.pem, name: app.internal, client_certificate: true}
    backend_timeout: {connect: 1s, first_byte: 2m}
    tls: {min_version: "1.2", max_version: TLSv1.2, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384], groups: [P-256, x25519]}
    alpn: [http/1.1]
    alias: Web.Site
    client_auth: optional
    client_ca: /k/clients.jks
    client_ca_password_file: /k/clients.pass
    client_crl: /k/clients.crl
    crl_expired: warn
    hosts: [{names: [h.test], client_crl: /k/h.crl}]
    client_headers: {cert: ssl_client_cert, chain: "", format: pem-spaces}
    trusted_proxies: [10.0.0.0/8]
  - {listen: "unix:/run/tlsd.sock", backend: "tcp://db:5432", client_ca: x.pem, client_auth: none}
constraints: {certpath: "", tls: "TLSv1.2"}
default_alias: fallback
expiry_warning: 7d
reload_poll: 5s
run_dir: /run/tlsd
drain: {delay: 5s, timeout: 1m}
isolation: require
plugin_wait: 3s
limits: {handshake_timeout: 4s, connections: 7, connections_per_ip: 3, handshakes: 5, idle: 1h, lifetime: 0s}
metrics: {listen: "0.0.0.0:9100"}
admin: {listen: "unix:/run/tlsd/admin.sock", pprof: true}
keystore_limits: {iterations: 1000}
log: {level: warn, format: json, debug: [keymanager]}
`

func TestWholeFile(t *testing.T) {
	eff := input{file: whole}.mustLoad(t)
	c := eff.Config
	if got, want := c.Keystores[0].Keys[0].Alias, "Web"; got != want {
		t.Errorf("alias %q, want %q", got, want)
	}
	if c.Keystores[1].Key.File != "/k/key.pass" || c.Keystores[1].Type != "auto" {
		t.Errorf("second keystore is %v", c.Keystores[1])
	}
	l := c.Listeners[0]
	if l.MinVersion != tls.VersionTLS12 || l.MaxVersion != tls.VersionTLS12 {
		t.Errorf("versions %x to %x", l.MinVersion, l.MaxVersion)
	}
	if diff := cmp.Diff([]uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}, l.CipherSuites); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint16{uint16(tls.CurveP256), uint16(tls.X25519)}, l.Groups); diff != "" {
		t.Error(diff)
	}
	wantHeaders := framework.ClientHeaders{Cert: "ssl_client_cert", Subject: "X-Client-Subject", Format: "pem-spaces"}
	if diff := cmp.Diff(wantHeaders, l.ClientHeaders); diff != "" {
		t.Error(diff)
	}
	if l.ConnectTimeout != time.Second || l.FirstByte != 2*time.Minute || l.BackendTLS.Name != "app.internal" || !l.BackendTLS.ClientCertificate {
		t.Errorf("backend settings are %+v", l)
	}
	if l.ClientCA.Path != "/k/clients.jks" || l.ClientCA.Password.File != "/k/clients.pass" {
		t.Errorf("client CA is %+v", l.ClientCA)
	}
	if got := c.Listeners[1].ClientCA.Path; got != "" {
		t.Errorf("a trust store that nobody is checked against is read: %q", got)
	}
	o := c.Options
	if *o.Constraints.CertPath != "" || *o.Constraints.TLS != "TLSv1.2" || o.DefaultAlias != "fallback" ||
		o.ExpiryWarning != 7*24*time.Hour || o.Poll != 5*time.Second || o.Iterations != 1000 {
		t.Errorf("options are %+v", o)
	}
	if diff := cmp.Diff([]string{"Web.Site"}, o.Aliases); diff != "" {
		t.Error(diff)
	}
	if c.RunDir != "/run/tlsd" || c.Drain != time.Minute || c.PluginWait != 3*time.Second || c.DrainDelay != 5*time.Second {
		t.Errorf("durations are %+v", c)
	}
	wantLimits := framework.Limits{HandshakeTimeout: 4 * time.Second, Connections: 7, ConnectionsPerIP: 3, Handshakes: 5, Idle: time.Hour}
	if diff := cmp.Diff(wantLimits, c.Limits); diff != "" {
		t.Error(diff)
	}
	if l.ClientCRL != "/k/clients.crl" || l.CRLExpired != framework.CRLExpiredWarn || l.Hosts[0].ClientCRL != "/k/h.crl" || c.Isolation != framework.IsolationRequire {
		t.Errorf("revocation and isolation are %+v, %q", l, c.Isolation)
	}
	if eff.Metrics != "0.0.0.0:9100" || eff.Admin != "unix:/run/tlsd/admin.sock" || !eff.Pprof {
		t.Errorf("metrics on %q, admin on %q, profiles %v", eff.Metrics, eff.Admin, eff.Pprof)
	}
	if diff := cmp.Diff(map[string]string{"": "warn", "keymanager": "debug"}, c.LogLevels); diff != "" {
		t.Error(diff)
	}
}

// Constraints that are not given are the JDK's, which is not the same as none.
func TestConstraintsNotGivenAreNil(t *testing.T) {
	if c := (input{}).mustLoad(t).Options.Constraints; c.CertPath != nil || c.TLS != nil {
		t.Errorf("got %v", c)
	}
	eff := input{args: []string{"-Djdk.certpath.disabledAlgorithms=MD5", "-D", "jdk.tls.disabledAlgorithms="}}.mustLoad(t)
	if c := eff.Options.Constraints; *c.CertPath != "MD5" || *c.TLS != "" {
		t.Errorf("got %v", c)
	}
}

// Keys of settings keep their case and dots, and values their kind, in every
// format.
func TestPluginSettingsKeepKeys(t *testing.T) {
	const want = `{"Slot.One":3,"nested":{"WWW.Example.test":[true,"x"]},"pin":"0123"}`
	for ext, file := range map[string]string{
		"yaml": "plugins: [{name: hsm, path: /p, settings: {Slot.One: 3, pin: '0123', nested: {WWW.Example.test: [true, x]}}}]\nkeymanager: hsm",
		"json": `{"plugins": [{"name": "hsm", "path": "\/p", "settings": {"Slot.One": 3, "pin": "0123", "nested": {"WWW.Example.test": [true, "x"]}}}], "keymanager": "hsm"}`,
		"toml": "keymanager = 'hsm'\n[[plugins]]\nname = 'hsm'\npath = '/p'\n[plugins.settings]\n'Slot.One' = 3\npin = '0123'\n[plugins.settings.nested]\n'WWW.Example.test' = [true, 'x']\n",
	} {
		t.Run(ext, func(t *testing.T) {
			eff := input{file: file, ext: ext}.mustLoad(t)
			if got := string(eff.Plugins[0].Settings); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestPluginSettingFlags(t *testing.T) {
	eff := input{
		file: "plugins: [{name: hsm, path: /p, settings: {Slot: 1, keep: a}}]\nkeymanager: hsm",
		args: []string{"--plugin-setting", "hsm.Slot=2", "--plugin-setting", "hsm.label=a=b", "--plugin-setting", `hsm.pin="0123"`},
	}.mustLoad(t)
	if got, want := string(eff.Plugins[0].Settings), `{"Slot":2,"keep":"a","label":"a=b","pin":"0123"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Anchors and merges are YAML that people write.
func TestYAMLMerge(t *testing.T) {
	eff := input{file: "keystores: [{path: a}]\nlisteners:\n- &one {listen: ':1', backend: 'tcp://a:1'}\n- {<<: *one, listen: ':2'}\n"}.mustLoad(t)
	if got := eff.Listeners[1]; got.Listen != ":2" || got.Backend != "tcp://a:1" {
		t.Errorf("got %q to %q", got.Listen, got.Backend)
	}
}

func TestDurationsRoundTrip(t *testing.T) {
	for _, s := range []string{"500ms", "2s", "1m", "1m30s", "1h", "21d"} {
		d, err := parseDuration(s)
		if err != nil || formatDuration(d) != s {
			t.Errorf("%s: got %v, %v, written %s", s, d, err, formatDuration(d))
		}
	}
}
