// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/backend"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// onListener makes a setter for a field of the one listener that flags
// describe.
func onListener(key string, set func(l *listener, v string) error) setter {
	return one(func(d *draft, v, from string) error {
		d.perListener = append(d.perListener, overlay{key, from, func(l *listener) error { return set(l, v) }})
		return nil
	})
}

// onEvery makes a setter for a field of every listener.
func onEvery(key string, set func(l *listener, v string) error) setter {
	return one(func(d *draft, v, from string) error {
		d.perEvery = append(d.perEvery, overlay{key, from, func(l *listener) error { return set(l, v) }})
		return nil
	})
}

// text makes a setter of a pointer to a text field.
func text(field func(l *listener) *string) func(*listener, string) error {
	return func(l *listener, v string) error {
		*field(l) = v
		return nil
	}
}

func setTrustStore(l *listener, v string) error {
	l.ClientCA = v
	return nil
}

func setTrustStoreType(l *listener, v string) error {
	l.ClientCAType = strings.ToLower(v)
	if !slices.Contains(keystoreTypes(), l.ClientCAType) {
		return fmt.Errorf("%q is no keystore type; there are %s", v, strings.Join(keystoreTypes(), ", "))
	}
	return nil
}

func (d *draft) setTrustStorePassword(v, from string) error {
	d.noteArgv(from)
	secret := keymanager.Secret(v)
	d.perListener = append(d.perListener, overlay{"client_ca_password", from, func(l *listener) error {
		l.ClientCAPassword, l.ClientCAPasswordFile = &secret, ""
		return nil
	}})
	return nil
}

// finishListeners lays flags and properties over the file's listeners.
func (d *draft) finishListeners() error {
	if n := len(d.Listeners); n > 1 && len(d.perListener) > 0 {
		return fmt.Errorf("%s: describes one listener, and %q has %d; change it there", d.perListener[0].from, d.file, n)
	}
	if len(d.Listeners) == 0 {
		d.Listeners = []listener{{}}
	}
	for i := range d.Listeners {
		at := fmt.Sprintf("listeners[%d]", i)
		for _, o := range append(slices.Clone(d.perEvery), d.perListener...) {
			d.origins[at+"."+o.key] = o.from
			if err := o.set(&d.Listeners[i]); err != nil {
				return fmt.Errorf("%s: %w", o.from, err)
			}
		}
		if err := d.checkClientCA(at, &d.Listeners[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkClientCA refuses trusted certificates that nobody would be checked
// against, unless that was said. A JVM's trust store is often there for other
// connections, so that one is noted only.
func (d *draft) checkClientCA(at string, l *listener) error {
	asks := l.ClientAuth == string(framework.ClientAuthOptional) || l.ClientAuth == string(framework.ClientAuthRequire)
	switch {
	case asks && l.ClientCA == "":
		return d.wrong(at+".client_auth", "%s needs trusted certificates; give client_ca (or --client-ca)", l.ClientAuth)
	case l.ClientAuth == "" && l.ClientCA != "" && strings.HasPrefix(d.origin(at+".client_ca"), "-D "):
		d.note("%s has no effect while client certificates are not asked for; see --client-auth", d.origin(at+".client_ca"))
	case l.ClientAuth == "" && l.ClientCRL != "":
		return d.wrong(at+".client_crl", "is of client certificates, which are not asked for; give client_auth (or --client-auth) and client_ca (or --client-ca)")
	case l.ClientAuth == "" && l.ClientCA != "":
		return d.wrong(at+".client_ca", "says nothing about whether certificates are asked for; give client_auth (or --client-auth) as none, optional or require")
	}
	return nil
}

// listeners returns the listeners as a server takes them.
func (d *draft) listeners() ([]framework.Listener, error) {
	var out []framework.Listener
	seen := map[string]int{}
	for i := range d.Listeners {
		l, err := d.listener(i)
		if err != nil {
			return nil, err
		}
		at := fmt.Sprintf("listeners[%d].listen", i)
		if first, again := seen[l.Listen]; again {
			return nil, d.wrong(at, "%q is what listeners[%d] listens on", l.Listen, first)
		}
		seen[l.Listen] = i
		out = append(out, l)
	}
	return out, nil
}

func (d *draft) listener(i int) (framework.Listener, error) {
	s, at := &d.Listeners[i], fmt.Sprintf("listeners[%d].", i)
	l := framework.Listener{
		Listen: s.Listen, Backend: s.Backend, Alias: s.Alias, ALPN: s.ALPN,
		BackendTLS:     s.BackendTLS.framework(),
		ConnectTimeout: s.BackendTimeout.Connect, FirstByte: s.BackendTimeout.FirstByte,
		ClientHeaders: framework.ClientHeaders{
			Cert: *s.ClientHeaders.Cert, Chain: *s.ClientHeaders.Chain, Subject: *s.ClientHeaders.Subject,
			Format: s.ClientHeaders.Format,
		},
	}
	for _, set := range []func(string, *listener, *framework.Listener) error{
		d.address, d.backend, d.unknownSNI, d.clientAuth, d.proxies, d.headerFormat, d.tls, d.hosts,
	} {
		if err := set(at, s, &l); err != nil {
			return l, err
		}
	}
	return l, nil
}

func (d *draft) address(at string, s *listener, _ *framework.Listener) error {
	return d.checkAddress(at+"listen", s.Listen)
}

// checkAddress holds the value of a key against what can be listened on.
func (d *draft) checkAddress(key, listen string) error {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		if path == "" {
			return d.wrong(key, "%q has no path", listen)
		}
		return nil
	}
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return d.wrong(key, "%q is no address; write host:port (127.0.0.1:8443, [::1]:8443, :8443) or unix:PATH", listen)
	}
	return nil
}

func (d *draft) backend(at string, s *listener, _ *framework.Listener) error {
	target, err := backend.Parse(s.Backend)
	if err != nil {
		return d.wrong(at+"backend", "%w", err)
	}
	if !target.TLS() && s.BackendTLS != (backendTLS{}) {
		return d.wrong(at+"backend_tls", "is for https and tls backends, and this one is %q", s.Backend)
	}
	return nil
}

func (d *draft) clientAuth(at string, s *listener, l *framework.Listener) error {
	l.ClientAuth = framework.ClientAuth(s.ClientAuth)
	switch l.ClientAuth {
	case framework.ClientAuthNone, framework.ClientAuthOptional, framework.ClientAuthRequire:
	default:
		return d.wrong(at+"client_auth", "%q is neither none, optional nor require", s.ClientAuth)
	}
	if l.ClientAuth != framework.ClientAuthNone || len(s.Hosts) > 0 { // a host may ask by it
		l.ClientCA = framework.TrustStore{
			Path: absolute(s.ClientCA), Type: s.ClientCAType,
			Password: keymanager.PasswordRef{File: absolute(s.ClientCAPasswordFile), Value: s.ClientCAPassword},
		}
		l.ClientCRL = absolute(s.ClientCRL)
	}
	l.CRLExpired = framework.CRLExpired(s.CRLExpired)
	if l.CRLExpired != framework.CRLExpiredRefuse && l.CRLExpired != framework.CRLExpiredWarn {
		return d.wrong(at+"crl_expired", "%q is neither refuse nor warn", s.CRLExpired)
	}
	return nil
}

func (d *draft) proxies(at string, s *listener, l *framework.Listener) error {
	for i, text := range s.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if ip, notIP := netip.ParseAddr(text); notIP == nil && ip.Zone() == "" {
			p, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil {
			return d.wrong(fmt.Sprintf("%strusted_proxies[%d]", at, i), "%q is no CIDR; write 10.0.0.0/8, or 10.1.2.3 for one address", text)
		}
		l.TrustedProxies = append(l.TrustedProxies, p)
	}
	return nil
}

func (d *draft) headerFormat(at string, s *listener, _ *framework.Listener) error {
	formats := []string{"rfc9440", "der-b64", "pem-urlencoded", "pem-spaces"}
	if !slices.Contains(formats, s.ClientHeaders.Format) {
		return d.wrong(at+"client_headers.format", "%q is no format; there are %s", s.ClientHeaders.Format, strings.Join(formats, ", "))
	}
	return nil
}

// loopback reports whether only this machine can reach a listener.
func loopback(listen string) bool {
	if strings.HasPrefix(listen, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}
