// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/backend"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// host is what is other at a listener for some server names. What is left out
// is the listener's, which framework.Host says more of.
type host struct {
	Names                []string   `mapstructure:"names"`
	Backend              string     `mapstructure:"backend"`
	BackendTLS           backendTLS `mapstructure:"backend_tls"`
	Alias                string     `mapstructure:"alias"`
	ClientAuth           string     `mapstructure:"client_auth"`
	ClientCA             string     `mapstructure:"client_ca"`
	ClientCAPasswordFile string     `mapstructure:"client_ca_password_file"`
	ClientCRL            string     `mapstructure:"client_crl"`
}

// unknownSNI sets what becomes of clients that name no server that there is.
func (d *draft) unknownSNI(at string, s *listener, l *framework.Listener) error {
	l.UnknownSNI = framework.UnknownSNI(s.UnknownSNI)
	if l.UnknownSNI != framework.UnknownSNIDefault && l.UnknownSNI != framework.UnknownSNIReject {
		return d.wrong(at+"unknown_sni", "%q is neither default nor reject", s.UnknownSNI)
	}
	return nil
}

// hosts sets the hosts of a listener.
func (d *draft) hosts(at string, s *listener, l *framework.Listener) error {
	seen := map[string]string{} // name: how and where it is written
	for i := range s.Hosts {
		h, key := &s.Hosts[i], fmt.Sprintf("%shosts[%d]", at, i)
		for _, check := range []func(string, *host, *listener) error{d.hostBackend, d.hostClients} {
			if err := check(key+".", h, s); err != nil {
				return err
			}
		}
		names, err := d.hostNames(key, h, seen)
		if err != nil {
			return err
		}
		l.Hosts = append(l.Hosts, h.framework(names))
	}
	return nil
}

// hostNames returns the names in the one form that they are compared in.
func (d *draft) hostNames(key string, h *host, seen map[string]string) ([]string, error) {
	if len(h.Names) == 0 {
		return nil, d.wrong(key+".names", "there are none; what is meant for all names is the listener's own")
	}
	var names []string
	for j, written := range h.Names {
		at := fmt.Sprintf("%s.names[%d]", key, j)
		name, err := framework.ParseHostName(written)
		if err != nil {
			return nil, d.wrong(at, "%w", err)
		}
		if first := seen[name]; first != "" {
			return nil, d.wrong(at, "%q is the name that is there as %s already; leave out one of them", written, first)
		}
		seen[name] = fmt.Sprintf("%q (%s)", written, at)
		if _, err := netip.ParseAddr(name); err == nil {
			d.note("%s: %s is chosen by clients only that send an address as server name, which RFC 6066 forbids; for others give a listener of its own", at, name)
		}
		names = append(names, name)
	}
	return names, nil
}

func (d *draft) hostBackend(at string, h *host, s *listener) error {
	target, err := backend.Parse(cmp.Or(h.Backend, s.Backend))
	if err != nil {
		return d.wrong(at+"backend", "%w", err)
	}
	if !target.TLS() && h.BackendTLS != (backendTLS{}) {
		return d.wrong(at+"backend_tls", "is for https and tls backends, and this one is %q", cmp.Or(h.Backend, s.Backend))
	}
	return nil
}

func (d *draft) hostClients(at string, h *host, s *listener) error {
	auth := framework.ClientAuth(cmp.Or(h.ClientAuth, s.ClientAuth))
	switch auth {
	case framework.ClientAuthOptional, framework.ClientAuthRequire:
		if h.ClientCA == "" && s.ClientCA == "" {
			return d.wrong(at+"client_auth", "%s needs trusted certificates; give client_ca here or at the listener", auth)
		}
	case framework.ClientAuthNone:
		if h.ClientCA != "" && h.ClientAuth == "" {
			return d.wrong(at+"client_ca", "says nothing about whether certificates are asked for; give client_auth as none, optional or require")
		}
		if h.ClientCRL != "" && h.ClientAuth == "" {
			return d.wrong(at+"client_crl", "is of client certificates, which are not asked for; give client_auth")
		}
	default:
		return d.wrong(at+"client_auth", "%q is neither none, optional nor require", h.ClientAuth)
	}
	if h.ClientCA == "" && h.ClientCAPasswordFile != "" {
		return d.wrong(at+"client_ca_password_file", "is for client_ca, which is not given here; the listener's has its own")
	}
	return nil
}

// framework returns the host as a server takes it.
func (h *host) framework(names []string) framework.Host {
	out := framework.Host{
		Names: names, Backend: h.Backend, BackendTLS: h.BackendTLS.framework(),
		Alias: h.Alias, ClientAuth: framework.ClientAuth(h.ClientAuth),
	}
	if h.ClientAuth != string(framework.ClientAuthNone) {
		out.ClientCA = framework.TrustStore{
			Path:     absolute(h.ClientCA),
			Password: keymanager.PasswordRef{File: absolute(h.ClientCAPasswordFile)},
		}
		out.ClientCRL = absolute(h.ClientCRL)
	}
	return out
}

func (b *backendTLS) framework() framework.BackendTLS {
	return framework.BackendTLS{
		CA: framework.TrustStore{Path: absolute(b.CA)}, Name: b.Name, ClientCertificate: b.ClientCertificate,
	}
}

// aliases lists the entries that listeners and hosts demand.
func (d *draft) aliases() []string {
	var all []string
	for _, l := range d.Listeners {
		all = append(all, l.Alias)
		for _, h := range l.Hosts {
			all = append(all, h.Alias)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(a string) bool { return a == "" })
}
