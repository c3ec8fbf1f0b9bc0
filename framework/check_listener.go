// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// defaultListen and defaultBackend are what a Listener without them has.
const (
	defaultListen  = "127.0.0.1:8443"
	defaultBackend = "builtin:hello"
	unixPrefix     = "unix:"
)

// check finds mistakes in l, which is one of a Config's. The error names the
// field as configuration files do, and says what to do.
func (l *Listener) check() error {
	if err := checkAddress(l.Listen); err != nil {
		return err
	}
	if err := l.checkVersions(); err != nil {
		return err
	}
	for _, id := range l.CipherSuites {
		if err := checkSuite(id); err != nil {
			return err
		}
	}
	for _, id := range l.Groups {
		if !slices.Contains(knownGroups(), tls.CurveID(id)) {
			return fmt.Errorf("group %#04x is not known: use one of %v", id, knownGroups())
		}
	}
	if err := checkALPN(l.ALPN); err != nil {
		return err
	}
	switch l.UnknownSNI {
	case "", UnknownSNIDefault, UnknownSNIReject:
	default:
		return fmt.Errorf("unknown_sni %q is neither default nor reject", l.UnknownSNI)
	}
	if err := l.checkClientAuth(); err != nil {
		return err
	}
	return l.checkHosts()
}

// checkALPN finds names that no client can offer (RFC 7301, 3.1).
func checkALPN(names []string) error {
	for i, name := range names {
		if name == "" || len(name) > 255 {
			return fmt.Errorf("alpn %q: a protocol's name has 1 to 255 bytes", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("alpn %q is there twice", name)
		}
	}
	return nil
}

func checkAddress(address string) error {
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		if path == "" {
			return errors.New("no path: write unix:PATH")
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return errors.New("not an address: write host:port or unix:PATH")
	}
	return nil
}

func (l *Listener) checkVersions() error {
	for _, v := range []struct {
		field string
		value uint16
	}{{"min_version", l.MinVersion}, {"max_version", l.MaxVersion}} {
		if v.value != 0 && v.value != tls.VersionTLS12 && v.value != tls.VersionTLS13 {
			return fmt.Errorf("%s %s can't be served: use TLS 1.2 or TLS 1.3", v.field, tls.VersionName(v.value))
		}
	}
	if l.MaxVersion != 0 && l.MinVersion > l.MaxVersion {
		return fmt.Errorf("min_version %s is above max_version %s: no version is left", tls.VersionName(l.MinVersion), tls.VersionName(l.MaxVersion))
	}
	return nil
}

// checkSuite admits TLS 1.2 suites whose key exchange is signed for: with RSA
// key exchange the key would have to decrypt, and keys here sign only.
func checkSuite(id uint16) error {
	name := tls.CipherSuiteName(id)
	known := slices.ContainsFunc(slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()),
		func(s *tls.CipherSuite) bool { return s.ID == id })
	switch {
	case !known:
		return fmt.Errorf("cipher suite %#04x is not known: use TLS 1.2 suites that begin with TLS_ECDHE_", id)
	case !strings.HasPrefix(name, "TLS_ECDHE_"):
		return fmt.Errorf("cipher suite %s can't be chosen: use TLS 1.2 suites that begin with TLS_ECDHE_ (those of TLS 1.3 are always on)", name)
	}
	return nil
}

func knownGroups() []tls.CurveID {
	return []tls.CurveID{
		tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024,
		tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521,
	}
}

func (l *Listener) checkClientAuth() error {
	switch l.CRLExpired {
	case "", CRLExpiredRefuse, CRLExpiredWarn:
	default:
		return fmt.Errorf("crl_expired %q is neither refuse nor warn", l.CRLExpired)
	}
	switch l.ClientAuth {
	case "", ClientAuthNone:
		return nil
	case ClientAuthOptional, ClientAuthRequire:
		if l.ClientCA.Path == "" {
			return fmt.Errorf("client_auth is %q without a trust store: set client_ca, or --client-ca PATH", l.ClientAuth)
		}
		return nil
	}
	return fmt.Errorf("client_auth %q is not one of none, optional, require", l.ClientAuth)
}

// asks says whether clients are asked for a certificate.
func (a ClientAuth) asks() bool { return a.tlsAuth() != tls.NoClientCert }

// tlsAuth returns what crypto/tls calls a.
func (a ClientAuth) tlsAuth() tls.ClientAuthType {
	switch a {
	case ClientAuthOptional:
		return tls.VerifyClientCertIfGiven
	case ClientAuthRequire:
		return tls.RequireAndVerifyClientCert
	}
	return tls.NoClientCert
}

// withListeners returns c with the defaults of its listeners filled in, and the
// aliases that they demand told to the key manager.
func (c Config) withListeners() Config {
	c.Listeners = slices.Clone(c.Listeners)
	if len(c.Listeners) == 0 {
		c.Listeners = []Listener{{}}
	}
	c.Options.Aliases = slices.Clone(c.Options.Aliases)
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.Listen == "" {
			l.Listen = defaultListen
		}
		if l.Backend == "" {
			l.Backend = defaultBackend
		}
		for _, site := range l.sites() {
			if site.Alias != "" && !slices.Contains(c.Options.Aliases, site.Alias) {
				c.Options.Aliases = append(c.Options.Aliases, site.Alias)
			}
		}
	}
	return c
}

func (c *Config) checkListeners() error {
	for i := range c.Listeners {
		if err := c.Listeners[i].check(); err != nil {
			return fmt.Errorf("listener %q: %w", c.Listeners[i].Listen, err)
		}
	}
	return nil
}
