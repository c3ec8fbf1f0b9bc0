// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Properties whose syntax and defaults constraints follow.
const (
	propertyCertPath = "jdk.certpath.disabledAlgorithms"
	propertyTLS      = "jdk.tls.disabledAlgorithms"
)

// Defaults of JDK 25.
const (
	defaultCertPath = "MD2, MD5, SHA1 jdkCA & usage TLSServer, RSA keySize < 1024, DSA keySize < 1024, " +
		"EC keySize < 224, SHA1 usage SignedJAR & denyAfter 2019-01-01"
	defaultTLS = "SSLv3, TLSv1, TLSv1.1, DTLSv1.0, RC4, DES, MD5withRSA, DH keySize < 1024, EC keySize < 224, " +
		"3DES_EDE_CBC, anon, NULL, ECDH, TLS_RSA_*, rsa_pkcs1_sha1 usage HandshakeSignature, " +
		"ecdsa_sha1 usage HandshakeSignature, dsa_sha1 usage HandshakeSignature"
)

// Constraints say which algorithms may not be used, in the syntax of the JDK's
// java.security file. They are immutable.
type Constraints struct {
	certPath, tls []rule
	compat        bool
	warnings      []string
}

// ParseConstraints parses both expressions; nil means the defaults of JDK 25. A
// mistake is an error that names property and position. With compat the
// constraints act as in the JDK's key managers: a self-signed top certificate
// is judged too, usage never applies and denyAfter by key algorithm only.
func ParseConstraints(c keymanager.Constraints, compat bool) (*Constraints, error) {
	out := &Constraints{compat: compat}
	var err error
	if out.certPath, err = parseRules(propertyCertPath, valueOr(c.CertPath, defaultCertPath)); err != nil {
		return nil, err
	}
	if out.tls, err = parseRules(propertyTLS, valueOr(c.TLS, defaultTLS)); err != nil {
		return nil, err
	}
	if c.CertPath != nil {
		out.warn(propertyCertPath, out.certPath)
	}
	if c.TLS != nil {
		out.warn(propertyTLS, out.tls)
	}
	return out, nil
}

func valueOr(p *string, def string) string {
	if p == nil {
		return def
	}
	return *p
}

// Warnings names, one sentence each, the rules that an operator wrote and that
// cannot act here.
func (c *Constraints) Warnings() []string { return c.warnings }

// Violation is the error that Chain returns: which rule denies which
// certificate.
type Violation struct {
	Rule      string // as written
	Subject   string // of the certificate
	Algorithm string // what the rule matched
}

func (v *Violation) Error() string {
	return fmt.Sprintf("algorithm constraint %q denies %s of certificate %q", v.Rule, v.Algorithm, v.Subject)
}

// fact is one use of an algorithm, put to the rules.
type fact struct {
	names []string
	bits  int // -1: unknown, and then no keySize condition holds
	role  keymanager.Role
	use   string // useCertSignature, useHandshakeSig or empty
	now   time.Time
}

// Chain returns nil where a local chain (leaf first) may be used in role at
// now, else a *Violation. Each certificate is judged by its signature algorithm
// (with its issuer's key) and by its own key. A self-signed certificate above
// the leaf is not judged, and of a self-signed leaf only the key, since nobody
// relies on such a signature; the JDK judges both.
func (c *Constraints) Chain(chain []*x509.Certificate, role keymanager.Role, now time.Time) error {
	for i, cert := range chain {
		selfSigned := bytes.Equal(cert.RawSubject, cert.RawIssuer) && !c.compat
		if selfSigned && i > 0 && i == len(chain)-1 {
			continue
		}
		names, bits := keyNames(cert.PublicKey)
		key := fact{names: names, bits: bits, role: role, now: now}
		if r := c.denies(key); r != nil {
			return &Violation{r.text, cert.Subject.String(), fmt.Sprintf("the %s key", cert.PublicKeyAlgorithm)}
		}
		if selfSigned {
			continue
		}
		sig := fact{names: signatureNames(cert.SignatureAlgorithm), bits: -1, role: role, use: useCertSignature, now: now}
		if i+1 < len(chain) {
			_, sig.bits = keyNames(chain[i+1].PublicKey)
		}
		if r := c.denies(sig); r != nil {
			return &Violation{r.text, cert.Subject.String(), fmt.Sprintf("the signature %s", cert.SignatureAlgorithm)}
		}
	}
	return nil
}

// Scheme returns nil where handshakes may be signed by s, else a *Violation
// without a subject. Rules without conditions mean s by the names of its parts
// too, as in the JDK: RSASSA-PSS, SHA256withECDSA or SHA256.
func (c *Constraints) Scheme(s tls.SignatureScheme, role keymanager.Role, now time.Time) error {
	if err := c.offered(s); err != nil {
		return err
	}
	what := "handshake signature " + schemeName(s)
	if err := c.connection(what, schemeParts(s)); err != nil {
		return err
	}
	f := fact{names: []string{schemeName(s)}, bits: -1, role: role, use: useHandshakeSig, now: now}
	if r := firstDenial(c.tls, f, c.compat); r != nil {
		return &Violation{Rule: r.text, Algorithm: what}
	}
	return nil
}

// offered returns nil where the JDK counts s among what a peer offers, for
// chains and handshakes alike, else a *Violation: it drops schemes by every name
// that they have, that of their curve among them, in both properties.
func (c *Constraints) offered(s tls.SignatureScheme) error {
	if !c.compat {
		return nil
	}
	names := schemeParts(s)
	for _, rules := range [][]rule{c.tls, c.certPath} {
		for i := range rules {
			if r := &rules[i]; len(r.conditions) == 0 && r.matches(names) {
				return &Violation{Rule: r.text, Algorithm: "signature scheme " + schemeName(s)}
			}
		}
	}
	return nil
}

// curve returns nil where keys on the curve may be used, else a *Violation
// without a subject.
func (c *Constraints) curve(id tls.CurveID) error {
	if id == 0 {
		return nil
	}
	for _, rules := range [][]rule{c.tls, c.certPath} {
		for i := range rules {
			if r := &rules[i]; len(r.conditions) == 0 && r.matches(groupNames(id)) {
				return &Violation{Rule: r.text, Algorithm: "curve " + id.String()}
			}
		}
	}
	return nil
}

// Dates returns the instants at which a verdict may change, in no order.
func (c *Constraints) Dates() []time.Time {
	var dates []time.Time
	for _, r := range slices.Concat(c.certPath, c.tls) {
		for _, cond := range r.conditions {
			if cond.kind == denyAfter {
				dates = append(dates, cond.after)
			}
		}
	}
	return dates
}

func (c *Constraints) denies(f fact) *rule {
	if r := firstDenial(c.tls, f, c.compat); r != nil {
		return r
	}
	return firstDenial(c.certPath, f, c.compat)
}

func firstDenial(rules []rule, f fact, compat bool) *rule {
	for i := range rules {
		if rules[i].matches(f.names) && rules[i].holds(f, compat) {
			return &rules[i]
		}
	}
	return nil
}

func (r *rule) matches(names []string) bool {
	if !r.wildcard {
		return slices.Contains(names, r.name)
	}
	return slices.ContainsFunc(names, func(n string) bool {
		ok, err := path.Match(r.name, n)
		return ok && err == nil
	})
}

// holds reports whether all conditions hold. Two usage conditions are one more
// that must hold each.
func (r *rule) holds(f fact, compat bool) bool {
	for _, c := range r.conditions {
		if !c.holds(f, compat) {
			return false
		}
	}
	return true
}

func (c condition) holds(f fact, compat bool) bool {
	switch c.kind {
	case keySize:
		return f.bits >= 0 && compare(f.bits, c.op, c.size)
	case denyAfter:
		return !f.now.Before(c.after) && !(compat && f.use == useCertSignature)
	case usage:
		return !compat && f.usedFor(c.uses) || slices.Contains(c.uses, useHandshakeSig) && f.use == useHandshakeSig
	}
	return false // jdkCA: a local chain has no known anchor
}

func (f fact) usedFor(uses []string) bool {
	role := useTLSServer
	if f.role == keymanager.RoleClient {
		role = useTLSClient
	}
	return slices.Contains(uses, role) || f.use != "" && slices.Contains(uses, f.use)
}

func compare(a int, op string, b int) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case "==":
		return a == b
	case "!=":
		return a != b
	case ">=":
		return a >= b
	}
	return a > b
}
