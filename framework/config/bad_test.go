// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each mistake has its message: it names the key and where it was given, and
// says what to write instead.
func TestBadInput(t *testing.T) {
	tests := []struct {
		name string
		in   input
		want string
	}{
		{"unknown_key", input{file: "keymanager: pkix\nlistners: []\n"}, `configuration file "tlsd.yaml": line 2: listners: unknown key; did you mean "listeners"?`},
		{"unknown_key_without_value", input{file: "listners:\n"}, `line 1: listners: unknown key`},
		{"unknown_key_in_list", input{file: "listeners:\n- listen: ':1'\n  backnd: x\n"}, `line 3: listeners[0].backnd: unknown key; did you mean "backend"?`},
		{"unknown_key_json", input{ext: "json", file: "{\n\"keystores\": [{\n\t\"pth\": \"a\"}]}"}, `configuration file "tlsd.json": line 3: keystores[0].pth: unknown key; did you mean "path"?`},
		{"unknown_key_toml", input{ext: "toml", file: "[log]\nlevle = 'info'\n"}, `configuration file "tlsd.toml": log.levle: unknown key; did you mean "level"?`},
		{"far_from_any_key", input{file: "drain: {xyzzy: 1}\n"}, `drain.xyzzy: unknown key; known here: delay, timeout`},
		{"other_case", input{file: "Keymanager: pkix\n"}, `Keymanager: unknown key; did you mean "keymanager"?`},
		{"twice", input{file: "keymanager: pkix\nlog: {level: info}\nkeymanager: sunx509\n"}, `line 3: keymanager: given twice, first on line 1`},
		{"twice_json", input{ext: "json", file: "{\"keymanager\": \"pkix\",\n\"keymanager\": \"pkix\"}"}, `line 2: keymanager: given twice, first on line 1`},
		{"twice_toml", input{ext: "toml", file: "keymanager = 'pkix'\nkeymanager = 'pkix'\n"}, `configuration file "tlsd.toml": toml: key keymanager is already defined`},
		{"twice_in_settings", input{file: "plugins: [{name: a, path: b, settings: {k: 1, k: 2}}]"}, `plugins[0].settings.k: given twice`},
		{"bare_duration", input{file: "plugin_wait: 2\n"}, `line 1: plugin_wait: a bare number is no duration; write a unit, as in 2s`},
		{"no_duration", input{file: "plugin_wait: soon\n"}, `plugin_wait: "soon" is no duration; write a number and a unit (ms, s, m, h, d), as in 10s`},
		{"zero_duration", input{file: "drain: {timeout: 0s}\n"}, `drain.timeout: must be more than zero`},
		{"number_for_text", input{file: "listeners: [{tls: {min_version: 1.2}}]\n"}, `listeners[0].tls.min_version: must be text and is a number; put it in quotes`},
		{"text_for_list", input{file: "listeners: [{alpn: h2}]\n"}, `listeners[0].alpn: must be a list and is text`},
		{"mapping_for_list", input{file: "keystores: {path: a}\n"}, `keystores: must be a list and is a mapping`},
		{"list_for_file", input{file: "- a\n"}, `the file: must be a mapping and is a list`},
		{"text_for_bool", input{file: "listeners: [{backend_tls: {client_certificate: 'yes'}}]\n"}, `must be true or false and is text`},
		{"text_for_number", input{file: "keystore_limits: {iterations: many}\n"}, `keystore_limits.iterations: must be a number and is text`},
		{"fraction", input{file: "keystore_limits: {iterations: 1.5}\n"}, `keystore_limits.iterations: 1.5 is no whole number`},
		{"fraction_json", input{ext: "json", file: `{"keystore_limits": {"iterations": 1e3}}`}, `keystore_limits.iterations: 1e3 is no whole number`},
		{"zero_iterations", input{file: "keystore_limits: {iterations: 0}\nkeystores: [{path: a}]"}, `keystore_limits.iterations (tlsd.yaml:1): 0 must be more than zero`},
		{"all_at_once", input{file: "a: 1\nb: 2\n"}, "line 1: a: unknown key"},
		{"second_document", input{file: "log: {level: info}\n---\nlog: {level: info}\n"}, `a second document; only one can be read`},
		{"second_document_broken", input{file: "log: {level: info}\n---\nlog: {level: [\n"}, `configuration file "tlsd.yaml": yaml: line`},
		{"syntax", input{file: "keymanager: [\n"}, `configuration file "tlsd.yaml": yaml: line`},
		{"syntax_json", input{ext: "json", file: "{\n\"a\": }"}, `configuration file "tlsd.json": line 2:`},
		{"anchor_in_itself", input{file: "keystores: &a [*a]\n"}, `anchor 'a' value contains itself`},
		{"password", input{file: "keystores: [{path: a, password: 0123456}]\n"}, `keystores[0].password: unknown key; a password does not stand in the configuration: name a file with password_file, or set TLSD_KEYSTORE_PASSWORD`},
		{"key_of_an_endpoint", input{file: "allow_user: [tlsd]\nkeystores: [{path: a}]\n"}, `allow_user (tlsd.yaml:1): is of tlsd keymanager serve`},
		{"no_file", input{args: []string{"--config", "nope.yaml"}}, `read configuration file "nope.yaml": no such file or directory`},
		{"directory", input{args: []string{"--config", "."}}, `read configuration file ".": is a directory`},

		{"unknown_tier", input{args: []string{"--keymanager", "pkixcache"}}, `keymanager (flag --keymanager): there is no key manager "pkixcache"; did you mean "pkixcached"? (there are: pkixcached, pkix, sunx509; others with --plugin NAME=PATH)`},
		{"unknown_tier_in_file", input{file: "keystores: [{path: a}]\nkeymanager: x\n"}, `keymanager (tlsd.yaml:2): there is no key manager "x"`},
		{"unknown_tier_in_environment", input{env: map[string]string{EnvKeyManager: "x"}}, `keymanager (environment TLSD_KEYMANAGER): there is no key manager "x"`},
		{"left_out_tier", input{not: []string{"sunx509"}, args: []string{"--keymanager", "sunx509"}}, `"sunx509" is not in this build (built with no_sunx509); build without the tag, or name a plugin executable`},
		{"no_tier_at_all", input{not: []string{"pkix", "pkixcached", "sunx509"}}, `no key manager in this build: name one with --plugin NAME=PATH and --keymanager NAME`},
		{"cert_checking", input{args: []string{"--keymanager", "sunx509", "-Djdk.tls.SunX509KeyManager.certChecking=true"}}, `sunx509 checks no certificates; use --keymanager pkix`},

		{"unknown_flag", input{args: []string{"--keystor", "a"}}, `unknown flag: --keystor; did you mean --keystore?`},
		{"jvm_flag", input{args: []string{"-Xmx512m"}}, `-Xmx512m: a JVM's option; those go into TLSD_OPTS`},
		{"flag_of_an_endpoint", input{args: []string{"--allow-user", "tlsd"}}, `flag --allow-user: is of tlsd keymanager serve`},
		{"flag_twice", input{args: []string{"--listen", ":1", "--listen", ":2"}}, `it is given twice`},
		{"empty_flag", input{args: []string{"--keystore", ""}}, `it is empty`},

		{"unknown_property", input{args: []string{"-Djavax.net.ssl.keystore=a"}}, `-D javax.net.ssl.keystore: unknown name; did you mean javax.net.ssl.keyStore? (known: javax.net.debug, javax.net.ssl.keyStore,`},
		{"unknown_tlsd_property", input{args: []string{"-D", "tlsd.listen=a"}}, `-D tlsd.listen: unknown name (known: `},
		{"foreign_property", input{args: []string{"-Duser.home=a"}}, `-D user.home: unknown name; other programs' names go into TLSD_OPTS`},
		{"property_without_value", input{args: []string{"-Djavax.net.ssl.keyStore"}}, `-D javax.net.ssl.keyStore: has no value`},
		{"property_without_name", input{args: []string{"-D", "=a"}}, `-D without a name`},
		{"unknown_property_in_opts", input{env: map[string]string{EnvOpts: "-Djdk.tls.bogus=1"}}, `-D jdk.tls.bogus: unknown name`},
		{"open_quote_in_opts", input{env: map[string]string{EnvOpts: `-Da="b`}}, `environment TLSD_OPTS: a quote is not closed`},
		{"keystore_none", input{args: []string{"-Djavax.net.ssl.keyStore=NONE"}}, `NONE stands for a token`},

		{"keystore_type", input{args: []string{"--keystore", "a", "--keystore-type", "p12"}}, `keystores[0].type (flag --keystore-type): "p12" is no keystore type; there are auto, pkcs12, jks, jceks, pem`},
		{"password_count", input{args: []string{"--keystore", "a", "--keystore", "b", "--keystore", "c", "--keystore-password-file", "a", "--keystore-password-file", "b"}}, `flag --keystore-password-file: given 2 times beside 3 keystores`},
		{"keystore_without_path", input{file: "keystores: [{type: jks}]"}, `keystores[0] (tlsd.yaml:1): has no path`},
		{"alias_twice", input{file: "keystores: [{path: a, key_passwords: [{alias: Web, file: x}, {alias: web, file: y}]}]"}, `alias "web" is given twice`},
		{"plugin_form", input{args: []string{"--plugin", "hsm"}}, `flag --plugin: "hsm": write NAME=PATH`},
		{"plugin_checksum", input{args: []string{"--plugin", "hsm=/bin/true@sha256:12"}}, `"12" is no SHA-256`},
		{"plugin_checksum_kind", input{args: []string{"--plugin", "hsm=/bin/true@" + strings.Repeat("0f", 32)}}, `write @sha256:0f0f`},
		{"plugin_of_tier_name", input{args: []string{"--plugin", "pkix=/bin/true"}}, `"pkix" is the name of a tier that is built in`},
		{"setting_of_nobody", input{args: []string{"--plugin-setting", "hsm.pin=1"}}, `there is no plugin "hsm"`},

		{"address", input{args: []string{"--listen", "8443"}}, `listeners[0].listen (flag --listen): "8443" is no address; write host:port`},
		{"backend", input{args: []string{"--backend", "localhost:8080"}}, `listeners[0].backend (flag --backend): backend "localhost:8080": `},
		{"backend_tls_without_tls", input{file: "keystores: [{path: a}]\nlisteners: [{backend: 'http://a', backend_tls: {name: a}}]"}, `backend_tls (tlsd.yaml:2): is for https and tls backends, and this one is "http://a"`},
		{"tab_in_yaml", input{file: "log:\n\tlevel: info\n"}, `cannot start any token: YAML is indented with blanks, never with tabs`},
		{"two_listeners_and_flag", input{file: "keystores: [{path: a}]\nlisteners: [{listen: ':1'}, {listen: ':2'}]", args: []string{"--backend", "tcp://a:1"}}, `flag --backend: describes one listener, and "tlsd.yaml" has 2`},
		{"same_address", input{file: "keystores: [{path: a}]\nlisteners: [{listen: ':1'}, {listen: ':1'}]"}, `":1" is what listeners[0] listens on`},
		{"client_auth", input{args: []string{"--client-auth", "need", "--client-ca", "a"}}, `client_auth (flag --client-auth): "need" is neither none, optional nor require`},
		{"client_auth_without_ca", input{args: []string{"--client-auth", "require"}}, `require needs trusted certificates; give client_ca (or --client-ca)`},
		{"ca_without_client_auth", input{args: []string{"--client-ca", "a"}}, `client_ca (flag --client-ca): says nothing about whether certificates are asked for`},
		{"proxy", input{file: "keystores: [{path: a}]\nlisteners: [{trusted_proxies: [here]}]"}, `trusted_proxies[0] (tlsd.yaml:2): "here" is no CIDR`},
		{"header_format", input{file: "keystores: [{path: a}]\nlisteners: [{client_headers: {format: pem}}]"}, `"pem" is no format; there are rfc9440, der-b64, pem-urlencoded, pem-spaces`},
		{"version", input{args: []string{"-Djdk.tls.server.protocols=TLSv1.1,TLSv1.2"}}, `-D jdk.tls.server.protocols: there is no version "TLSv1.1" here; it is never offered: leave it out; there are TLSv1.2, TLSv1.3`},
		{"versions_crossed", input{file: "keystores: [{path: a}]\nlisteners: [{tls: {min_version: '1.3', max_version: '1.2'}}]"}, `max_version (tlsd.yaml:2): "1.2" is below min_version "1.3"`},
		{"suite", input{args: []string{"-Djdk.tls.server.cipherSuites=TLS_RSA_WITH_AES_128_GCM_SHA256"}}, `there is no cipher suite "TLS_RSA_WITH_AES_128_GCM_SHA256" here; a key exchange by RSA encryption is never offered: leave it out; there are TLS_AES_128_GCM_SHA256,`},
		{"suite_of_dhe", input{args: []string{"-Djdk.tls.server.cipherSuites=TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"}}, `finite-field Diffie-Hellman is never offered: leave it out`},
		{"suite_of_openssl", input{args: []string{"-Djdk.tls.server.cipherSuites=ECDHE-ECDSA-AES128-GCM-SHA256"}}, `here; did you mean TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256? there are`},
		{"suite_of_openssl_cbc", input{args: []string{"-Djdk.tls.server.cipherSuites=ECDHE-RSA-AES256-SHA"}}, `here; did you mean TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA? there are`},
		{"only_tls13_suites", input{args: []string{"-Djdk.tls.server.cipherSuites=TLS_AES_256_GCM_SHA384"}}, `names no suite of TLS 1.2; add one, or set min_version "1.3"`},
		{"group", input{args: []string{"-Djdk.tls.namedGroups=x25519,ffdhe2048"}}, `there is no group "ffdhe2048" here; finite-field Diffie-Hellman is never offered: leave it out; there are X25519MLKEM768,`},
		{"isolation", input{file: "keystores: [{path: a}]\nisolation: always\n"}, `isolation (tlsd.yaml:2): "always" is neither report nor require`},
		{"negative_limit", input{file: "limits: {connections: -1}\n"}, `line 1: limits.connections: -1 must not be less than zero`},
		{"negative_span", input{file: "limits: {idle: -1s}\n"}, `line 1: limits.idle: must not be less than zero`},
		{"bare_span", input{file: "drain: {delay: 5}\n"}, `drain.delay: a bare number is no duration; write a unit, as in 5s`},
		{"crl_expired", input{file: "keystores: [{path: a}]\nlisteners: [{crl_expired: ignore}]\n"}, `crl_expired (tlsd.yaml:2): "ignore" is neither refuse nor warn`},
		{"crl_without_client_auth", input{args: []string{"--client-crl", "a.crl"}}, `client_crl (flag --client-crl): is of client certificates, which are not asked for; give client_auth`},
		{"crl_of_host_without_client_auth", input{file: "keystores: [{path: a}]\nlisteners: [{hosts: [{names: [a.test], client_crl: x}]}]\n"}, `listeners[0].hosts[0].client_crl (tlsd.yaml:2): is of client certificates`},
		{"admin_for_all", input{args: []string{"--admin", ":9101"}}, `admin.listen (flag --admin): ":9101" can be reached from other machines; write 127.0.0.1:9101 or unix:PATH`},
		{"admin_for_others", input{args: []string{"--admin", "10.0.0.1:9101"}}, `"10.0.0.1:9101" can be reached from other machines`},
		{"metrics_address", input{args: []string{"--metrics", "9100"}}, `metrics.listen (flag --metrics): "9100" is no address; write host:port`},
		{"metrics_path", input{args: []string{"--metrics", "unix:"}}, `"unix:" has no path`},
		{"metrics_on_listener", input{args: []string{"--metrics", "127.0.0.1:8443"}}, `"127.0.0.1:8443" is what listeners[0] listens on`},
		{"metrics_on_admin", input{args: []string{"--metrics", "127.0.0.1:1", "--admin", "127.0.0.1:1"}}, `admin.listen (flag --admin): "127.0.0.1:1" is what metrics listens on`},
		{"pprof_without_admin", input{file: "keystores: [{path: a}]\nadmin: {pprof: true}\n"}, `admin.pprof (tlsd.yaml:2): is for the admin listener, and there is none; give admin.listen (or --admin)`},
		{"log_level", input{args: []string{"--log-level", "loud"}}, `log.level (flag --log-level): log level "loud": unknown`},
		{"log_format", input{args: []string{"--log-format", "xml"}}, `"xml" is neither json nor console`},
		{"debug_logger", input{args: []string{"--debug", "keymanger"}}, `there is no logger "keymanger" to debug`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.in.load(t)
			if err == nil {
				t.Fatalf("no error, want %q", tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Neither an error nor a note shows a password, wherever it was given wrongly.
func TestErrorsShowNoSecret(t *testing.T) {
	const secret = "S3cr3t-4711"
	for name, in := range map[string]input{
		"opts_blank":     {env: map[string]string{EnvOpts: "-Djavax.net.ssl.keyStorePassword=a " + secret}},
		"opts_dash":      {env: map[string]string{EnvOpts: "-Djavax.net.ssl.keyStorePassword=a -" + secret}},
		"opts_value":     {env: map[string]string{EnvOpts: "-javaagent:/agent.jar=token=" + secret + " -ea:" + secret}},
		"variable":       {env: map[string]string{"TLSD_PASSWORD": secret}},
		"no_name":        {args: []string{"-D", "=" + secret}},
		"unknown_name":   {args: []string{"-Djavax.net.ssl.password=" + secret}},
		"plugin_setting": {args: []string{"--plugin-setting", "hsm.pin=" + secret}},
		"in_file":        {file: "keystores: [{path: a, password: " + secret + "}]"},
	} {
		t.Run(name, func(t *testing.T) {
			eff, err := in.load(t)
			said := fmt.Sprint(err)
			if err == nil {
				said = strings.Join(eff.Notes, "\n")
			}
			if said == "" || strings.Contains(said, secret) {
				t.Errorf("said: %s", said)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	tests := []struct {
		name string
		in   input
		want string // empty: no note
	}{
		{"none", input{}, ""},
		{"password_in_argv", input{args: []string{"--keystore", "a", "-Djavax.net.ssl.keyStorePassword=x"}}, "everyone who can list processes"},
		{"password_in_opts", input{args: []string{"--keystore", "a"}, env: map[string]string{EnvOpts: "-Djavax.net.ssl.keyStorePassword=x"}}, ""},
		{"jvm_option_in_opts", input{env: map[string]string{EnvOpts: "-Xmx512m"}}, "-Xmx512m in TLSD_OPTS is a JVM's option"},
		{"forgotten_keystore", input{args: []string{"--keystore-password-file", "p"}}, "no keystore is configured: serving a throw-away certificate; flag --keystore-password-file has no effect"},
		{"forgotten_keystore_in_environment", input{env: map[string]string{EnvKeystorePassword: "x"}}, "no keystore is configured: serving a throw-away certificate; environment TLSD_KEYSTORE_PASSWORD has no effect"},
		{"password_file_and_environment", input{file: "keystores: [{path: a, password_file: p}]", env: map[string]string{EnvKeystorePassword: "x"}}, "environment TLSD_KEYSTORE_PASSWORD takes the place of keystores[0].password_file"},
		{"password_by_flag", input{file: "keystores: [{path: a, password_file: p}]", args: []string{"--keystore-password-file", "q"}, env: map[string]string{EnvKeystorePassword: "x"}}, ""},
		{"unknown_variable", input{env: map[string]string{"TLSD_KEYSTORE": "a"}}, "environment TLSD_KEYSTORE has no effect: there are TLSD_KEYMANAGER, TLSD_KEYSTORE_PASSWORD, TLSD_OPTS"},
		{"variables_of_a_service", input{env: map[string]string{"TLSD_PORT": "tcp://10.0.0.1:8443", "TLSD_PORT_8443_TCP": "x", "TLSD_SERVICE_HOST": "x"}}, ""},
		{"tlsd_flag_in_opts", input{env: map[string]string{EnvOpts: "--listen=127.0.0.1:1"}}, "--listen in TLSD_OPTS has no effect: it belongs on the command line"},
		{"unknown_word_in_opts", input{env: map[string]string{EnvOpts: "-Da.b=c d"}}, "word 2 in TLSD_OPTS has no effect: it is no option that is known; a value with a blank in it needs quotes"},
		{"foreign_in_opts", input{env: map[string]string{EnvOpts: "-Dspring.profiles.active=prod"}}, "-D spring.profiles.active in TLSD_OPTS is not tlsd's"},
		{"idle_name", input{args: []string{"-Djdk.tls.ephemeralDHKeySize=2048"}}, "-D jdk.tls.ephemeralDHKeySize has no effect: finite-field"},
		{"debug_of_other", input{args: []string{"-Djavax.net.debug=ssl:handshake"}}, `"ssl:handshake" has no effect`},
		{"trust_store_unused", input{args: []string{"-Djavax.net.ssl.trustStore=t.jks"}}, "has no effect while client certificates are not asked for"},
		{"cert_checking_elsewhere", input{args: []string{"-Djdk.tls.SunX509KeyManager.certChecking=false"}}, `has no effect: the key manager is "pkixcached"`},
		{"some_tls13_suites", input{args: []string{"-Djdk.tls.server.cipherSuites=TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}}, "acts on TLS 1.2 only"},
		{"plugin_unused", input{args: []string{"--plugin", "hsm=/bin/true"}}, `plugin "hsm" is not used`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			notes := strings.Join(tt.in.mustLoad(t).Notes, "\n")
			if (tt.want == "") != (notes == "") || !strings.Contains(notes, tt.want) {
				t.Errorf("got notes %q, want %q", notes, tt.want)
			}
		})
	}
}

// A whole JAVA_OPTS can be pasted: each word that means nothing here is named
// once, without its value.
func TestPastedJavaOptions(t *testing.T) {
	const opts = "-server -ea:com.example... -XX:+UseG1GC -javaagent:/a.jar=x --add-opens java.base/java.lang=ALL-UNNAMED " +
		"--add-exports=java.base/sun.security.x509=ALL-UNNAMED -cp /app/* --module-path /mods -Dtlsd.keymanager=pkix -jar app.jar"
	want := []string{"-server", "-ea", "-XX:+UseG1GC", "-javaagent", "--add-opens", "--add-exports", "-cp", "--module-path", "-jar"}
	for i := range want {
		want[i] += " in TLSD_OPTS is a JVM's option and has no effect"
	}
	eff := input{env: map[string]string{EnvOpts: opts}}.mustLoad(t)
	if diff := cmp.Diff(want, eff.Notes); diff != "" {
		t.Error(diff)
	}
	if eff.KeyManager != "pkix" {
		t.Errorf("key manager %q", eff.KeyManager)
	}
}

func TestTrustedProxyAsAddress(t *testing.T) {
	eff := input{file: "keystores: [{path: a}]\nlisteners: [{trusted_proxies: [10.1.2.3, '::1', 192.0.2.0/24]}]\n"}.mustLoad(t)
	if got, want := fmt.Sprint(eff.Listeners[0].TrustedProxies), "[10.1.2.3/32 ::1/128 192.0.2.0/24]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
