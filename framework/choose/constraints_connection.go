// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// Rules without conditions of jdk.tls.disabledAlgorithms act on the connection
// too: on protocol versions, cipher suites, key exchange groups and this side's
// signatures.

// Version returns nil where protocol version v may be negotiated, else a
// *Violation.
func (c *Constraints) Version(v uint16) error {
	return c.connection("protocol "+tls.VersionName(v), versionNames(v))
}

// Suite returns nil where the cipher suite may be negotiated, else a
// *Violation.
func (c *Constraints) Suite(id uint16) error {
	name := tls.CipherSuiteName(id)
	return c.connection("cipher suite "+name, suiteParts(name))
}

// Group returns nil where the key exchange group may be negotiated, else a
// *Violation.
func (c *Constraints) Group(id tls.CurveID) error {
	return c.connection("group "+id.String(), groupNames(id))
}

func (c *Constraints) connection(what string, names []string) error {
	for i := range c.tls {
		if r := &c.tls[i]; len(r.conditions) == 0 && r.matches(names) {
			return &Violation{Rule: r.text, Algorithm: what}
		}
	}
	return nil
}

// versionNames returns Java's name of a protocol version, normalised.
func versionNames(v uint16) []string {
	if v == tls.VersionTLS10 {
		return []string{"tlsv1"}
	}
	return []string{strings.Replace(strings.ToLower(tls.VersionName(v)), "tls ", "tlsv", 1)}
}

// neverHere are algorithms that nothing here uses whatever the rules say, so
// that a rule against them is in force already.
var neverHere = []string{
	"sslv3", "sslv2hello", "tlsv1", "tlsv1.1", "dtlsv1.0", "dtlsv1.2", "rc4", "rc4_128", "rc4_40", "des", "des40_cbc", "des_cbc",
	"des40", "3des_ede_cbc", "3des", "anon", "null", "dh", "dhe", "dh_anon", "ecdh", "ecdh_anon", "dsa", "dss", "md2", "md5", "k_null", "c_null", "m_null",
	"dsa_sha1", "dsa_sha256", "dh_rsa", "dh_dss", "dhe_rsa", "dhe_dss", "ecdh_rsa", "ecdh_ecdsa", "krb5", "rc2", "idea", "export",
}

// warn notes the rules that can't act, or act in part only, and quotes them.
func (c *Constraints) warn(property string, rules []rule) {
	for i := range rules {
		if why := rules[i].inert(property == propertyTLS); why != "" {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: %q %s", property, rules[i].text, why))
		}
	}
}

// inert says what of a rule can't act here; empty: nothing.
func (r *rule) inert(inTLS bool) string {
	for _, cond := range r.conditions {
		switch {
		case cond.kind == jdkCA:
			return "never applies: no trust anchor is known for a local chain"
		case cond.kind == usage && !slices.ContainsFunc(cond.uses, func(u string) bool { return u != useSignedJAR }):
			return "never applies: nothing here verifies JAR files"
		}
	}
	switch {
	case slices.Contains(neverHere, r.name):
		return ""
	case inTLS && r.aboutHandshakes() && r.matches(schemeNames(len(r.conditions) == 0)):
		return "acts on this side only: what peers may sign with can't be chosen here"
	case r.matches(certificateNames()):
		return ""
	case !inTLS:
		return "matches no algorithm of certificates that is known here"
	case len(r.conditions) == 0:
		return r.inertOnConnection()
	}
	return "never applies: its conditions are about certificates, its name is not"
}

// aboutHandshakes reports whether the rule may deny a handshake signature.
func (r *rule) aboutHandshakes() bool {
	return !slices.ContainsFunc(r.conditions, func(c condition) bool {
		return c.kind == keySize || c.kind == usage && !slices.Contains(c.uses, useHandshakeSig)
	})
}

// inertOnConnection is for rules without conditions whose names are about no
// certificate.
func (r *rule) inertOnConnection() string {
	known := false
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !r.matches(suiteParts(s.Name)) {
			continue
		}
		known = true
		if slices.Contains(s.SupportedVersions, tls.VersionTLS13) {
			return "does not act on TLS 1.3, whose suites can't be chosen here: disable TLSv1.3 too, or leave it"
		}
	}
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		known = known || r.matches(versionNames(v))
	}
	for _, g := range Groups() {
		known = known || r.matches(groupNames(g))
	}
	if known || r.wildcard && strings.HasPrefix(r.name, "tls_rsa_") {
		return ""
	}
	return "matches nothing that is known here"
}

// Groups returns the key exchange groups that crypto/tls can negotiate.
func Groups() []tls.CurveID {
	return []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024, tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}
}

// certificateNames returns every name that a certificate's signature or key
// can have here.
func certificateNames() []string {
	names := []string{"rsa", "ec", "eddsa", "ed25519", "dsa"}
	for alg := x509.MD2WithRSA; alg <= x509.PureEd25519; alg++ {
		names = append(names, signatureNames(alg)...)
	}
	for _, g := range []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521} {
		names = append(names, groupNames(g)...)
	}
	return append(names, "secp224r1", "nist p-224", "1.3.132.0.33")
}

// schemeNames returns the handshake signature schemes that crypto/tls accepts,
// with the names of their parts where asked; those with SHA-1 it refuses
// whatever the rules say.
func schemeNames(parts bool) []string {
	var names []string
	for _, s := range []tls.SignatureScheme{
		tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512, tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512,
		tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512, tls.Ed25519,
	} {
		all := schemeParts(s) // the scheme's own name first
		if !parts {
			all = all[:1]
		}
		names = append(names, all...)
	}
	return names
}
