// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// endpointArgs are the least that an endpoint needs.
var endpointArgs = []string{"--keystore", "a.p12", "--listen", "unix:/run/x/km.sock", "--allow-user", "7"}

func (in input) loadEndpoint(t *testing.T) (*Endpoint, error) {
	t.Helper()
	given, err := in.given(t, (*Flags).RegisterEndpoint)
	if err != nil {
		return nil, err
	}
	return LoadEndpoint(given)
}

func (in input) mustLoadEndpoint(t *testing.T) *Endpoint {
	t.Helper()
	e, err := in.loadEndpoint(t)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEndpointByFlags(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	e := input{args: append(slices.Clone(endpointArgs), "--keymanager", "pkix", "--allow-user", me.Username,
		"--client-ca", "/c/a.jks", "--client-ca", "b.pem", "--client-ca-password-file", "/c/pass")}.mustLoadEndpoint(t)
	if e.Tier.Name != "pkix" || e.Socket != "/run/x/km.sock" {
		t.Errorf("tier %q, socket %q", e.Tier.Name, e.Socket)
	}
	if uid, _ := strconv.Atoi(me.Uid); !slices.Equal(e.Users, []int{7, uid}) {
		t.Errorf("users %v", e.Users)
	}
	here, _ := os.Getwd()
	want := []framework.TrustStore{
		{Path: "/c/a.jks", Password: keymanager.PasswordRef{File: "/c/pass"}},
		{Path: filepath.Join(here, "b.pem"), Password: keymanager.PasswordRef{File: "/c/pass"}},
	}
	if !slices.Equal(e.Trust, want) {
		t.Errorf("trust stores %v, want %v", e.Trust, want)
	}
	if len(e.Keystores) != 1 || e.Keystores[0].Paths[0] != filepath.Join(here, "a.p12") {
		t.Errorf("keystores %v", e.Keystores)
	}
}

func TestEndpointByFile(t *testing.T) {
	e := input{file: `
keymanager: sunx509
keystores: [{path: /k/a.p12, password_file: /k/pass}]
listeners: [{listen: "unix:/run/x/km.sock", client_ca: /c/ca.p12, client_ca_password_file: /c/pass}]
allow_user: ["1", "2"]
default_alias: site
reload_poll: 3s
`, args: []string{"-Djdk.tls.namedGroups=x25519"}}.mustLoadEndpoint(t)
	if e.Tier.Name != "sunx509" || e.Socket != "/run/x/km.sock" || !slices.Equal(e.Users, []int{1, 2}) {
		t.Errorf("%+v", e)
	}
	if e.Options.DefaultAlias != "site" || e.Options.Poll.Seconds() != 3 || e.Options.ExpiryWarning == 0 {
		t.Errorf("options %+v", e.Options)
	}
	if len(e.Trust) != 1 || e.Trust[0].Path != "/c/ca.p12" || e.Trust[0].Password.File != "/c/pass" {
		t.Errorf("trust stores %v", e.Trust)
	}
	if len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "-D jdk.tls.namedGroups has no effect") {
		t.Errorf("notes %q", e.Notes)
	}
}

func TestWhatIsNoEndpoint(t *testing.T) {
	with := func(more ...string) []string { return append(slices.Clone(endpointArgs), more...) }
	for name, tc := range map[string]struct {
		in   input
		want string
	}{
		"nobody":          {input{args: endpointArgs[:4]}, "nobody may use the keys: name the front's user with --allow-user USER"},
		"stranger":        {input{args: with("--allow-user", "no-such-user")}, `allow_user (flag --allow-user): there is no user "no-such-user" here`},
		"no-socket":       {input{args: []string{"--keystore", "a", "--allow-user", "1"}}, "give --listen unix:PATH"},
		"tcp":             {input{args: []string{"--keystore", "a", "--allow-user", "1", "--listen", ":8443"}}, "give --listen unix:PATH"},
		"no-keystore":     {input{args: endpointArgs[2:]}, "no keystore: give --keystore PATH"},
		"no-tier":         {input{args: with("--keymanager", "pkcs11")}, `there is no key manager "pkcs11"`},
		"endpoint-itself": {input{args: with("--keymanager", "unix:/a")}, `keymanager (flag --keymanager): "unix:/a" is an endpoint, and so will this be; name a tier that it runs`},
		"backend":         {input{args: with("--backend", "tcp://a:1")}, "unknown flag: --backend"},
		"front's-file":    {input{file: "limits: {connections: 3}\n", args: endpointArgs}, "limits.connections (tlsd.yaml:1): is the front's"},
		"front's-listener": {input{file: "listeners: [{listen: 'unix:/a', client_auth: require}]\n", args: endpointArgs},
			"listeners[0].client_auth (tlsd.yaml:1): is the front's"},
		"plugins":       {input{file: "plugins: [{name: a, path: /a}]\n", args: endpointArgs}, "plugins[0].name (tlsd.yaml:1): has no use with an endpoint; leave it out"},
		"run-dir":       {input{file: "run_dir: /a\n", args: endpointArgs}, "run_dir (tlsd.yaml:1): has no use with an endpoint; leave it out"},
		"two-sockets":   {input{file: "listeners: [{listen: 'unix:/a'}, {listen: 'unix:/b'}]\n", args: endpointArgs}, "an endpoint has one socket"},
		"passwords":     {input{args: with("--client-ca", "a", "--client-ca-password-file", "b", "--client-ca-password-file", "c")}, "given 2 times beside 1 trust stores"},
		"no-trust":      {input{args: with("--client-ca-password-file", "b")}, "given 1 times beside 0 trust stores"},
		"text-for-list": {input{file: "allow_user: tlsd\n", args: endpointArgs}, "allow_user: must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.in.loadEndpoint(t)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// A flag overrides the file, of a trust store's password too.
func TestTrustPasswordByFlag(t *testing.T) {
	in := input{file: "listeners: [{client_ca: /c/ca.p12, client_ca_password_file: /c/pass}]\n",
		args: append(slices.Clone(endpointArgs), "--allow-user", "1", "--client-ca-password-file", "/c/other")}
	e := in.mustLoadEndpoint(t)
	if len(e.Trust) != 1 || e.Trust[0].Path != "/c/ca.p12" || e.Trust[0].Password.File != "/c/other" {
		t.Errorf("trust stores %+v", e.Trust)
	}
}

func TestFrontOfAnEndpoint(t *testing.T) {
	eff := input{args: []string{"--keymanager", "unix:km.sock", "--listen", ":8443", "--alias", "site"}}.mustLoad(t)
	here, _ := os.Getwd()
	if eff.KeyManager != "unix:"+filepath.Join(here, "km.sock") || eff.Demo || len(eff.Keystores) > 0 {
		t.Errorf("key manager %q, demo %v, keystores %v", eff.KeyManager, eff.Demo, eff.Keystores)
	}
	if !slices.Equal(eff.Options.Aliases, []string{"site"}) {
		t.Errorf("demanded: %q", eff.Options.Aliases)
	}
}

func TestFrontLeavesToTheEndpointWhatIsIts(t *testing.T) {
	for name, tc := range map[string]struct {
		in   input
		want string
	}{
		"keystore":    {input{args: []string{"--keystore", "a.p12"}}, "keystores[0].path (flag --keystore)"},
		"file":        {input{file: "default_alias: a\nconstraints: {tls: x}\nreload_poll: 1s\n"}, "constraints.tls (tlsd.yaml:2), default_alias (tlsd.yaml:1), reload_poll (tlsd.yaml:3)"},
		"jvm":         {input{args: []string{"-Djdk.certpath.disabledAlgorithms=MD5"}}, "constraints.certpath (-D jdk.certpath.disabledAlgorithms)"},
		"environment": {input{env: map[string]string{EnvKeystorePassword: "x"}}, "environment " + EnvKeystorePassword},
		"demo":        {input{args: []string{"--demo"}}, "flag --demo"},
		"trust": {input{args: []string{"--client-auth", "require", "--client-ca", "a", "--client-ca-password-file", "b"}},
			"listeners[0].client_ca_password_file (flag --client-ca-password-file)"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.args = append(tc.in.args, "--keymanager", "unix:/km.sock")
			_, err := tc.in.load(t)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "give them to tlsd keymanager serve") {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	for _, in := range []input{{args: []string{"--plugin", "a=/a"}}, {file: "run_dir: /a\n"}} {
		in.args = append(in.args, "--keymanager", "unix:/km.sock")
		if _, err := in.load(t); err == nil || !strings.HasSuffix(err.Error(), "has no use with an endpoint; leave it out") {
			t.Errorf("what neither needs: %v", err)
		}
	}
	if _, err := (input{args: []string{"--keymanager", "unix:"}}).load(t); err == nil || !strings.Contains(err.Error(), "has no path") {
		t.Errorf("without a path: %v", err)
	}
}
