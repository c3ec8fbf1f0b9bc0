// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework"
)

// name is a TLS number and what it is called: first as a configuration has it,
// then by others (a JVM, IANA). Case does not count.
type name struct {
	id    uint16
	names []string
}

func versionNames() []name {
	return []name{
		{tls.VersionTLS12, []string{"1.2", "TLSv1.2", "TLS1.2"}},
		{tls.VersionTLS13, []string{"1.3", "TLSv1.3", "TLS1.3"}},
	}
}

// javaVersionNames lists the versions as a JVM has them.
func javaVersionNames() []name {
	return []name{{tls.VersionTLS12, []string{"TLSv1.2"}}, {tls.VersionTLS13, []string{"TLSv1.3"}}}
}

func groupNames() []name {
	return []name{
		{uint16(tls.X25519MLKEM768), []string{"X25519MLKEM768"}},
		{uint16(tls.SecP256r1MLKEM768), []string{"SecP256r1MLKEM768"}},
		{uint16(tls.SecP384r1MLKEM1024), []string{"SecP384r1MLKEM1024"}},
		{uint16(tls.X25519), []string{"x25519"}},
		{uint16(tls.CurveP256), []string{"secp256r1", "P-256", "prime256v1"}},
		{uint16(tls.CurveP384), []string{"secp384r1", "P-384"}},
		{uint16(tls.CurveP521), []string{"secp521r1", "P-521"}},
	}
}

// suiteNames lists the suites that crypto/tls has and that agree on a key by
// ECDHE; IANA and a JVM call them the same. RSA key exchange is never offered,
// since it decrypts and does not sign.
func suiteNames() []name {
	var names []name
	for _, s := range tls.CipherSuites() {
		if isTLS13(s) || strings.HasPrefix(s.Name, "TLS_ECDHE_") {
			names = append(names, name{s.ID, []string{s.Name}})
		}
	}
	return names
}

func isTLS13(s *tls.CipherSuite) bool { return slices.Contains(s.SupportedVersions, tls.VersionTLS13) }

// look finds a number by name; the error lists what there is.
func look(what, word string, in []name) (uint16, error) {
	var first []string
	for _, n := range in {
		for _, s := range n.names {
			if strings.EqualFold(s, word) {
				return n.id, nil
			}
		}
		first = append(first, n.names[0])
	}
	hint := ""
	if why := neverOffered(word); why != "" {
		hint = why + "; "
	} else if near := nearest(ianaSpelling(word), first); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near)
	}
	return 0, fmt.Errorf("there is no %s %q here; %sthere are %s", what, word, hint, strings.Join(first, ", "))
}

// neverOffered says why what a JVM's lists often have is not to be had.
func neverOffered(word string) string {
	word = ianaSpelling(word)
	switch {
	case strings.HasPrefix(word, "TLS_DHE_"), strings.HasPrefix(word, "DHE_"), strings.HasPrefix(word, "FFDHE"):
		return "finite-field Diffie-Hellman is never offered: leave it out"
	case strings.HasPrefix(word, "TLS_RSA_"):
		return "a key exchange by RSA encryption is never offered: leave it out"
	case slices.Contains([]string{"SSLV2HELLO", "SSLV3", "TLSV1", "TLSV1.0", "TLSV1.1"}, word):
		return "it is never offered: leave it out"
	}
	return ""
}

// ianaSpelling returns a suite in OpenSSL's spelling (ECDHE-RSA-AES128-GCM-SHA256)
// as IANA would have it, near enough to find the right one.
func ianaSpelling(word string) string {
	word = strings.ToUpper(word)
	auth, cipher, found := strings.Cut(word, "-AES")
	if !found || !strings.HasPrefix(word, "ECDHE-") && !strings.HasPrefix(word, "DHE-") {
		return word
	}
	cipher = strings.NewReplacer("-", "_", "128-", "128_", "256-", "256_").Replace(cipher)
	return "TLS_" + strings.ReplaceAll(auth, "-", "_") + "_WITH_AES_" + cipher
}

func (d *draft) tls(at string, s *listener, l *framework.Listener) (err error) {
	if l.MinVersion, err = look("version", s.TLS.MinVersion, versionNames()); err != nil {
		return d.wrong(at+"tls.min_version", "%w", err)
	}
	if s.TLS.MaxVersion != "" {
		if l.MaxVersion, err = look("version", s.TLS.MaxVersion, versionNames()); err != nil {
			return d.wrong(at+"tls.max_version", "%w", err)
		}
	}
	if l.MaxVersion != 0 && l.MaxVersion < l.MinVersion {
		return d.wrong(at+"tls.max_version", "%q is below min_version %q", s.TLS.MaxVersion, s.TLS.MinVersion)
	}
	for _, g := range s.TLS.Groups {
		id, err := look("group", g, groupNames())
		if err != nil {
			return d.wrong(at+"tls.groups", "%w", err)
		}
		l.Groups = append(l.Groups, id)
	}
	return d.suites(at+"tls.cipher_suites", s.TLS.CipherSuites, l)
}

// suites sets the suites of TLS 1.2. Those of TLS 1.3 are not to be chosen in
// Go; naming some of them is noted, naming nothing else is a mistake.
func (d *draft) suites(at string, words []string, l *framework.Listener) error {
	tls13 := 0
	for _, w := range words {
		id, err := look("cipher suite", w, suiteNames())
		if err != nil {
			return d.wrong(at, "%w", err)
		}
		if id>>8 == 0x13 { // TLS 1.3, RFC 8446, B.4
			tls13++
			continue
		}
		l.CipherSuites = append(l.CipherSuites, id)
	}
	switch {
	case len(words) == 0:
		return nil
	case len(l.CipherSuites) == 0 && l.MinVersion < tls.VersionTLS13:
		return d.wrong(at, "%w", errors.New(`names no suite of TLS 1.2; add one, or set min_version "1.3"`))
	case tls13 < 3 && l.MaxVersion != tls.VersionTLS12:
		d.note("%s (%s) acts on TLS 1.2 only: the three suites of TLS 1.3 are always offered; max_version \"1.2\" turns TLS 1.3 off", at, d.origin(at))
	}
	return nil
}

// setJavaProtocols sets the lowest and the highest of the versions listed.
func (d *draft) setJavaProtocols(v, from string) error {
	var ids []uint16
	for _, w := range list(v) {
		id, err := look("version", w, javaVersionNames())
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return fmt.Errorf("%s: lists no version", from)
	}
	lowest, highest := versionName(slices.Min(ids)), versionName(slices.Max(ids))
	d.perEvery = append(d.perEvery,
		overlay{"tls.min_version", from, func(l *listener) error { l.TLS.MinVersion = lowest; return nil }},
		overlay{"tls.max_version", from, func(l *listener) error { l.TLS.MaxVersion = highest; return nil }})
	return nil
}

func versionName(id uint16) string {
	if id == tls.VersionTLS13 {
		return "1.3"
	}
	return "1.2"
}

func setJavaSuites(l *listener, v string) error {
	l.TLS.CipherSuites = list(v)
	return nil
}

func setJavaGroups(l *listener, v string) error {
	l.TLS.Groups = list(v)
	return nil
}
