// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

const withHosts = `
keystores: [{path: /k/a.p12}]
listeners:
  - listen: 127.0.0.1:443
    unknown_sni: reject
    alias: Own
    client_auth: none
    client_ca: /k/own.pem
    hosts:
      - names: [WWW.Example.test, "*.B.example.test.", bücher.test, my_app.test]
        backend: https://Upper.test/
        backend_tls: {ca: /k/ca.pem, name: app.internal, client_certificate: true}
        alias: 1.0.Www.Example.Test
        client_auth: require
        client_ca: /K/Clients.jks
        client_ca_password_file: /k/clients.pass
      - {names: [c.test], client_auth: optional}
`

// Names arrive whole, dots included, in one form; values keep their case.
func TestHosts(t *testing.T) {
	want := []framework.Host{
		{
			Names:      []string{"www.example.test", "*.b.example.test", "xn--bcher-kva.test", "my_app.test"},
			Backend:    "https://Upper.test/",
			BackendTLS: framework.BackendTLS{CA: framework.TrustStore{Path: "/k/ca.pem"}, Name: "app.internal", ClientCertificate: true},
			Alias:      "1.0.Www.Example.Test",
			ClientAuth: framework.ClientAuthRequire,
			ClientCA:   framework.TrustStore{Path: "/K/Clients.jks", Password: keymanager.PasswordRef{File: "/k/clients.pass"}},
		},
		{Names: []string{"c.test"}, ClientAuth: framework.ClientAuthOptional},
	}
	for ext, in := range map[string]string{
		"yaml": withHosts,
		"json": `{"keystores": [{"path": "/k/a.p12"}], "listeners": [{"listen": "127.0.0.1:443", "unknown_sni": "reject", "alias": "Own",
			"client_auth": "none", "client_ca": "/k/own.pem", "hosts": [
			{"names": ["WWW.Example.test", "*.B.example.test.", "bücher.test", "my_app.test"], "backend": "https://Upper.test/",
			"backend_tls": {"ca": "/k/ca.pem", "name": "app.internal", "client_certificate": true}, "alias": "1.0.Www.Example.Test",
			"client_auth": "require", "client_ca": "/K/Clients.jks", "client_ca_password_file": "/k/clients.pass"},
			{"names": ["c.test"], "client_auth": "optional"}]}]}`,
		"toml": "[[keystores]]\npath = '/k/a.p12'\n[[listeners]]\nlisten = '127.0.0.1:443'\nunknown_sni = 'reject'\nalias = 'Own'\n" +
			"client_auth = 'none'\nclient_ca = '/k/own.pem'\n" +
			"[[listeners.hosts]]\nnames = ['WWW.Example.test', '*.B.example.test.', 'bücher.test', 'my_app.test']\nbackend = 'https://Upper.test/'\n" +
			"alias = '1.0.Www.Example.Test'\nclient_auth = 'require'\nclient_ca = '/K/Clients.jks'\nclient_ca_password_file = '/k/clients.pass'\n" +
			"[listeners.hosts.backend_tls]\nca = '/k/ca.pem'\nname = 'app.internal'\nclient_certificate = true\n" +
			"[[listeners.hosts]]\nnames = ['c.test']\nclient_auth = 'optional'\n",
	} {
		t.Run(ext, func(t *testing.T) {
			eff := input{file: in, ext: ext}.mustLoad(t)
			l := eff.Listeners[0]
			if diff := cmp.Diff(want, l.Hosts); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if l.UnknownSNI != framework.UnknownSNIReject || l.ClientCA.Path != "/k/own.pem" {
				t.Errorf("unknown_sni %q, client_ca %q", l.UnknownSNI, l.ClientCA.Path)
			}
			if diff := cmp.Diff([]string{"1.0.Www.Example.Test", "Own"}, eff.Options.Aliases); diff != "" {
				t.Errorf("aliases, -want +got:\n%s", diff)
			}
			if len(eff.Notes) > 0 {
				t.Errorf("notes: %q", eff.Notes)
			}
		})
	}
}

func TestBadHosts(t *testing.T) {
	const listener = "keystores: [{path: a.p12}]\nlisteners:\n- backend: tcp://a:1\n  hosts:\n"
	for _, tt := range []struct{ name, hosts, want string }{
		{"no_names", "  - {backend: 'tcp://b:1'}\n", `listeners[0].hosts[0].names: there are none`},
		{"empty_names", "  - {names: []}\n", `listeners[0].hosts[0].names (tlsd.yaml:5): there are none`},
		{"partial_wildcard", "  - {names: [a.test, 'w*.test']}\n", `listeners[0].hosts[0].names[1] (tlsd.yaml:5): "w*.test" is no host name: a wildcard stands for the whole left-most label`},
		{"port", "  - {names: ['a.test:443']}\n", `names[0] (tlsd.yaml:5): "a.test:443" is no host name: "test:443" is no label: a name has no scheme, port or path`},
		{"twice", "  - {names: [WWW.Example.test]}\n  - {names: [a.test, www.example.test]}\n",
			`listeners[0].hosts[1].names[1] (tlsd.yaml:6): "www.example.test" is the name that is there as "WWW.Example.test" (listeners[0].hosts[0].names[0]) already`},
		{"twice_by_idn", "  - {names: [bücher.test, xn--bcher-kva.test]}\n", `"xn--bcher-kva.test" is the name that is there as "bücher.test" (listeners[0].hosts[0].names[0]) already`},
		{"mapping", "    a.test: {backend: 'tcp://b:1'}\n", `listeners[0].hosts: must be a list and is a mapping`},
		{"unknown_key", "  - {names: [a.test], aliass: x}\n", `listeners[0].hosts[0].aliass: unknown key; did you mean "alias"?`},
		{"key_of_listener", "  - {names: [a.test], tls: {min_version: '1.3'}}\n", `listeners[0].hosts[0].tls: unknown key`},
		{"password", "  - {names: [a.test], client_ca_password: x}\n", `a password does not stand in the configuration`},
		{"backend", "  - {names: [a.test], backend: ftp://x}\n", `listeners[0].hosts[0].backend (tlsd.yaml:5): backend "ftp://x"`},
		{"backend_tls", "  - {names: [a.test], backend_tls: {name: x}}\n", `listeners[0].hosts[0].backend_tls (tlsd.yaml:5): is for https and tls backends, and this one is "tcp://a:1"`},
		{"client_auth", "  - {names: [a.test], client_auth: maybe}\n", `listeners[0].hosts[0].client_auth (tlsd.yaml:5): "maybe" is neither none, optional nor require`},
		{"no_client_ca", "  - {names: [a.test], client_auth: require}\n", `listeners[0].hosts[0].client_auth (tlsd.yaml:5): require needs trusted certificates; give client_ca here or at the listener`},
		{"no_client_auth", "  - {names: [a.test], client_ca: x.pem}\n", `listeners[0].hosts[0].client_ca (tlsd.yaml:5): says nothing about whether certificates are asked for`},
		{"password_file_alone", "  - {names: [a.test], client_ca_password_file: x}\n", `client_ca_password_file (tlsd.yaml:5): is for client_ca, which is not given here`},
		{"unknown_sni", "  - {names: [a.test]}\n  unknown_sni: refuse\n", `listeners[0].unknown_sni (tlsd.yaml:6): "refuse" is neither default nor reject`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := input{file: listener + tt.hosts}.load(t)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAddressAsHostIsNoted(t *testing.T) {
	eff := input{file: "keystores: [{path: a.p12}]\nlisteners: [{hosts: [{names: ['[2001:DB8::1]']}]}]\n"}.mustLoad(t)
	if len(eff.Notes) != 1 || !strings.Contains(eff.Notes[0], "listeners[0].hosts[0].names[0]: 2001:db8::1 is chosen by clients only that send an address") {
		t.Errorf("notes: %q", eff.Notes)
	}
}
