// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// input is what a test gives Load.
type input struct {
	args []string
	env  map[string]string
	file string   // content
	ext  string   // default yaml
	not  []string // tiers left out of the build
}

// load writes the file, parses the flags and loads, in a directory of its own.
func (in input) load(t *testing.T) (*Effective, error) {
	t.Helper()
	given, err := in.given(t, (*Flags).Register)
	if err != nil {
		return nil, err
	}
	return Load(given)
}

// given is what a command gets.
func (in input) given(t *testing.T, register func(*Flags, *pflag.FlagSet)) (Input, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	args := in.args
	if in.file != "" {
		ext := in.ext
		if ext == "" {
			ext = "yaml"
		}
		if err := os.WriteFile("tlsd."+ext, []byte(in.file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", "tlsd." + ext}, args...)
	}
	var flags Flags
	fs := pflag.NewFlagSet("tlsd", pflag.ContinueOnError)
	register(&flags, fs)
	if err := fs.Parse(args); err != nil {
		return Input{}, FlagError(fs, err)
	}
	return Input{Flags: &flags, Environ: in.environ(), Tiers: tiersWithout(in.not...)}, nil
}

func (in input) environ() []string {
	environ := []string{"LANG=C"}
	for name, value := range in.env {
		environ = append(environ, name+"="+value)
	}
	return environ
}

func (in input) mustLoad(t *testing.T) *Effective {
	t.Helper()
	eff, err := in.load(t)
	if err != nil {
		t.Fatal(err)
	}
	return eff
}

func tiersWithout(names ...string) []keymanager.Tier {
	var tiers []keymanager.Tier
	for _, b := range Builtins() {
		if !slices.Contains(names, b.Name) {
			tiers = append(tiers, keymanager.Tier{Name: b.Name})
		}
	}
	return tiers
}

// value returns what Values say of a key.
func value(t *testing.T, eff *Effective, key string) (val, origin string) {
	t.Helper()
	for _, v := range eff.Values {
		if v.Key == key {
			return v.Value, v.Origin
		}
	}
	t.Fatalf("no value %q", key)
	return "", ""
}

func TestPrecedence(t *testing.T) {
	const file = "keymanager: sunx509\nkeystores: [{path: file.p12, password_file: file.pass}]\nlisteners: [{listen: '127.0.0.1:1'}]\n"
	tests := []struct {
		name        string
		in          input
		key         string
		want, place string
	}{
		{"default", input{}, "keymanager", "pkixcached", "default"},
		{"file", input{file: file}, "keymanager", "sunx509", "tlsd.yaml:1"},
		{"environment_over_file", input{file: file, env: map[string]string{"TLSD_KEYMANAGER": "pkix"}}, "keymanager", "pkix", "environment TLSD_KEYMANAGER"},
		{"opts_over_environment", input{env: map[string]string{"TLSD_KEYMANAGER": "pkix", "TLSD_OPTS": "-Dtlsd.keymanager=sunx509"}}, "keymanager", "sunx509", "-D tlsd.keymanager in TLSD_OPTS"},
		{"property_over_opts", input{args: []string{"-Dssl.KeyManagerFactory.algorithm=PKIX"}, env: map[string]string{"TLSD_OPTS": "-Dtlsd.keymanager=sunx509"}}, "keymanager", "pkix", "-D ssl.KeyManagerFactory.algorithm"},
		{"flag_over_property", input{args: []string{"--keymanager=sunx509", "-D", "tlsd.keymanager=pkix"}}, "keymanager", "sunx509", "flag --keymanager"},
		{"tlsd_name_over_jvm_name", input{args: []string{"-Dtlsd.keymanager=sunx509", "-Dssl.KeyManagerFactory.algorithm=PKIX"}}, "keymanager", "sunx509", "-D tlsd.keymanager"},
		{"last_of_a_name", input{args: []string{"-Dtlsd.keymanager=sunx509", "-Dtlsd.keymanager=pkix"}}, "keymanager", "pkix", "-D tlsd.keymanager"},
		{"NewSunX509_is_pkix", input{args: []string{"-D", "ssl.KeyManagerFactory.algorithm=NewSunX509"}}, "keymanager", "pkix", "-D ssl.KeyManagerFactory.algorithm"},
		{"keystore_of_file", input{file: file}, "keystores[0].path", "file.p12", "tlsd.yaml:2"},
		{"property_replaces_keystores", input{file: file, args: []string{"-Djavax.net.ssl.keyStore=d.p12"}}, "keystores[0].path", "d.p12", "-D javax.net.ssl.keyStore"},
		{"and_their_passwords", input{file: file, args: []string{"-Djavax.net.ssl.keyStore=d.p12"}}, "keystores[0].password_file", "", "default"},
		{"flag_replaces_keystores", input{file: file, args: []string{"-Djavax.net.ssl.keyStore=d.p12", "--keystore", "f.p12"}}, "keystores[0].path", "f.p12", "flag --keystore"},
		{"password_of_lower_place_stays", input{args: []string{"-Djavax.net.ssl.keyStorePassword=x", "--keystore", "f.p12"}}, "keystores[0].password", "[secret]", "-D javax.net.ssl.keyStorePassword"},
		{"environment_password_over_file", input{file: file, env: map[string]string{"TLSD_KEYSTORE_PASSWORD": "x"}}, "keystores[0].password", "[secret]", "environment TLSD_KEYSTORE_PASSWORD"},
		{"flag_password_over_environment", input{file: file, args: []string{"--keystore-password-file", "p"}, env: map[string]string{"TLSD_KEYSTORE_PASSWORD": "x"}}, "keystores[0].password_file", "p", "flag --keystore-password-file"},
		{"listener_of_file_overridden", input{file: file, args: []string{"--listen", "127.0.0.1:2"}}, "listeners[0].listen", "127.0.0.1:2", "flag --listen"},
		{"type_in_jvm_spelling", input{args: []string{"--keystore", "a", "-Djavax.net.ssl.keyStoreType=PKCS12"}}, "keystores[0].type", "pkcs12", "-D javax.net.ssl.keyStoreType"},
		{"empty_environment_is_not_set", input{file: file, env: map[string]string{"TLSD_KEYMANAGER": "", "TLSD_KEYSTORE_PASSWORD": ""}}, "keystores[0].password_file", "file.pass", "tlsd.yaml:2"},
		{"empty_password_of_environment", input{file: "keystores: [{path: file.p12}]\n", env: map[string]string{"TLSD_KEYSTORE_PASSWORD": ""}}, "keystores[0].password", "[secret]", "environment TLSD_KEYSTORE_PASSWORD"},
		{"days", input{file: "expiry_warning: 30d\nkeystores: [{path: a}]"}, "expiry_warning", "30d", "tlsd.yaml:1"},
		{"debug", input{args: []string{"-Djavax.net.debug=ssl:keymanager"}}, "log.debug", "keymanager", "-D javax.net.debug"},
		{"versions", input{args: []string{"-Djdk.tls.server.protocols=TLSv1.3"}}, "listeners[0].tls.max_version", "1.3", "-D jdk.tls.server.protocols"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, place := value(t, tt.in.mustLoad(t), tt.key)
			if got != tt.want || place != tt.place {
				t.Errorf("%s = %q from %q, want %q from %q", tt.key, got, place, tt.want, tt.place)
			}
		})
	}
}

func TestDefaultTierMovesWithBuild(t *testing.T) {
	for _, tt := range []struct {
		name string
		not  []string // tiers left out of the build
		want string
	}{
		{"all", nil, "pkixcached"},
		{"no_pkixcached", []string{"pkixcached"}, "pkix"},
		{"only_sunx509", []string{"pkixcached", "pkix"}, "sunx509"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tiers := tiersWithout(tt.not...)
			eff, err := Load(Input{Environ: []string{}, Tiers: tiers})
			if err != nil || eff.KeyManager != tt.want {
				t.Errorf("got %v, %v; want %q", eff, err, tt.want)
			}
		})
	}
}

func TestDemo(t *testing.T) {
	const none = "no keystore"
	tests := []struct {
		name string
		in   input
		demo bool
		err  string
	}{
		{"nothing_given", input{}, true, ""},
		{"tier_only", input{args: []string{"--keymanager=pkix"}}, true, ""},
		{"loopback_listener", input{args: []string{"--listen", "[::1]:9443"}}, true, ""},
		{"unix_listener", input{args: []string{"--listen", "unix:/tmp/s"}}, true, ""},
		{"localhost", input{args: []string{"--listen", "localhost:9443"}}, true, ""},
		{"own_keystore", input{args: []string{"--keystore", "a.p12"}}, false, ""},
		{"open_listener", input{args: []string{"--listen", ":8443"}}, false, none},
		{"open_listener_demo", input{args: []string{"--listen", ":8443", "--demo"}}, true, ""},
		{"file", input{file: "log: {level: info}"}, false, none},
		{"file_demo", input{file: "log: {level: info}", args: []string{"--demo"}}, true, ""},
		{"keystore_and_demo", input{args: []string{"--keystore", "a.p12", "--demo"}}, false, "leave out one of them"},
		{"external_plugin", input{args: []string{"--plugin", "hsm=/bin/true", "--keymanager", "hsm"}}, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eff, err := tt.in.load(t)
			switch {
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got error %v, want %q", err, tt.err)
			case tt.err == "" && err != nil:
				t.Error(err)
			case err == nil && eff.Demo != tt.demo:
				t.Errorf("demo is %v", eff.Demo)
			}
		})
	}
}

// Paths count from the working directory, wherever they were given, and are
// handed on absolute.
func TestRelativePathsCountFromWorkingDirectory(t *testing.T) {
	in := input{file: "keystores: [{path: [tls.crt, tls.key], password_file: pass}]\nlisteners: [{client_auth: require, client_ca: ca.pem}]"}
	eff := in.mustLoad(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	src := eff.Keystores[0]
	for _, got := range []string{src.Paths[0], src.Paths[1], src.Store.File, eff.Listeners[0].ClientCA.Path} {
		if filepath.Dir(got) != dir {
			t.Errorf("%q is not in %q", got, dir)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	const secret = "S3cr3t-4711"
	eff := input{
		args: []string{"--plugin", "hsm=/bin/true", "--plugin-setting", "hsm.Pin=" + secret, "--keystore", "a",
			"-Djavax.net.ssl.trustStore=b", "-Djavax.net.ssl.trustStorePassword=" + secret, "--client-auth", "optional"},
		env: map[string]string{EnvKeystorePassword: secret},
	}.mustLoad(t)
	for _, v := range eff.Values {
		if strings.Contains(v.Value+v.Origin, secret) {
			t.Errorf("%s shows the secret", v.Key)
		}
	}
	if got := string(*eff.Keystores[0].Store.Value); got != secret {
		t.Error("the password did not arrive")
	}
	if got := string(*eff.Listeners[0].ClientCA.Password.Value); got != secret {
		t.Error("the trust store's password did not arrive")
	}
	if got := string(eff.Plugins[0].Settings); got != `{"Pin":"`+secret+`"}` {
		t.Error("the plugin's setting did not arrive in its own case")
	}
}
