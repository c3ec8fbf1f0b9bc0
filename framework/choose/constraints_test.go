// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func parse(t *testing.T, certPath, tlsProperty string, compat bool) *Constraints {
	t.Helper()
	c, err := ParseConstraints(keymanager.Constraints{CertPath: &certPath, TLS: &tlsProperty}, compat)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func chainOf(certs ...*testca.Cert) []*x509.Certificate {
	var chain []*x509.Certificate
	for _, c := range certs {
		chain = append(chain, c.Cert)
	}
	return chain
}

// TestConstraintsOnLocalChains is the table of what Java's key managers really
// enforce (measured with JDK 25), with our column beside Java's.
func TestConstraintsOnLocalChains(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root", Key: testca.RSA2048})
	oldRoot := testca.NewRoot(t, testca.Spec{Name: "old root", Key: testca.RSA2048, SigAlg: x509.SHA1WithRSA})
	leaf := root.Issue(t, testca.Spec{Name: "leaf", Key: testca.RSA2048})
	sha1Leaf := root.Issue(t, testca.Spec{Name: "sha1", Key: testca.RSA2048, SigAlg: x509.SHA1WithRSA})
	weak := root.Issue(t, testca.Spec{Name: "weak", Key: testca.RSA1024})
	ec := root.Issue(t, testca.Spec{Name: "ec", Key: testca.P256})
	underOld := oldRoot.Issue(t, testca.Spec{Name: "under old", Key: testca.RSA2048})
	selfSigned := testca.NewRoot(t, testca.Spec{Name: "self", Key: testca.RSA1024, SigAlg: x509.SHA1WithRSA})

	cases := []struct {
		name          string
		certPath, tls string
		chain         []*x509.Certificate
		ours, java    bool // denied
	}{
		{"sha1-leaf", "SHA1", "", chainOf(sha1Leaf), true, true},
		{"sha-1-spelling", "sha-1", "", chainOf(sha1Leaf), true, true},
		{"sha1-root", "SHA1", "", chainOf(underOld, oldRoot), false, true},
		{"sha1-issuer-not-in-chain", "SHA1", "", chainOf(underOld), false, false},
		{"jdkCA-disarms", "SHA1 jdkCA & usage TLSServer", "", chainOf(sha1Leaf), false, false},
		{"usage-server", "SHA1 usage TLSServer", "", chainOf(sha1Leaf), true, false},
		{"usage-client", "SHA1 usage TLSClient", "", chainOf(sha1Leaf), false, false},
		{"usage-server-key", "RSA usage TLSServer", "", chainOf(leaf), true, false},
		{"denyAfter-signature", "SHA1 denyAfter 2019-01-01", "", chainOf(sha1Leaf), true, false},
		{"denyAfter-key", "RSA denyAfter 2019-01-01", "", chainOf(leaf), true, true},
		{"denyAfter-future", "RSA denyAfter 2999-01-01", "", chainOf(leaf), false, false},
		{"keySize", "RSA keySize < 2048", "", chainOf(weak), true, true},
		{"keySize-of-another", "RSA keySize < 2048", "", chainOf(leaf), false, false},
		{"keySize-at-most", "RSA keySize <= 2048", "", chainOf(leaf), true, true},
		{"keySize-equal", "RSA keySize == 2048", "", chainOf(leaf), true, true},
		{"keySize-not-equal", "RSA keySize != 2048", "", chainOf(leaf), false, false},
		{"keySize-at-least", "RSA keySize >= 2048", "", chainOf(leaf), true, true},
		{"keySize-greater", "RSA keySize > 2048", "", chainOf(leaf), false, false},
		{"both-needed", "RSA keySize < 2048 & denyAfter 2019-01-01", "", chainOf(weak), true, true},
		{"both-needed-other-order", "RSA denyAfter 2019-01-01 & keySize < 2048", "", chainOf(leaf), false, false},
		{"curve", "secp256r1", "", chainOf(ec), true, true},
		{"curve-alias", "\"NONE, prime256v1\"", "", chainOf(ec), true, true},
		{"dsa-is-not-ecdsa", "DSA", "", chainOf(ec), false, false},
		{"tls-whole-name", "", "SHA256withRSA", chainOf(leaf), true, true},
		{"tls-ecdsa-signature", "", "ECDSA", chainOf(ec), false, false},
		{"tls-certificate-signature", "", "rsa_pkcs1_sha256 usage CertificateSignature", chainOf(leaf), true, false},
		{"tls-handshake-signature", "", "rsa_pkcs1_sha256 usage HandshakeSignature", chainOf(leaf), false, false},
		{"self-signed-leaf-signature", "SHA1", "", chainOf(selfSigned), false, true},
		{"self-signed-leaf-key", "RSA keySize < 2048", "", chainOf(selfSigned), true, true},
		{"include", "include jdk.disabled.namedCurves", "", chainOf(ec), false, false},
		{"empty", "", "", chainOf(sha1Leaf, oldRoot), false, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for _, side := range []struct {
				name   string
				compat bool
				want   bool
			}{{"ours", false, tc.ours}, {"java", true, tc.java}} {
				err := parse(t, tc.certPath, tc.tls, side.compat).Chain(tc.chain, keymanager.RoleServer, time.Now())
				if (err != nil) != side.want {
					t.Errorf("%s: denied = %v, want %v", side.name, err, side.want)
				}
				var v *Violation
				if err != nil && (!errors.As(err, &v) || v.Rule == "" || v.Subject == "") {
					t.Errorf("%s: %v names no rule or certificate", side.name, err)
				}
			}
		})
	}
}

func TestDefaultConstraintsAreThoseOfJDK25(t *testing.T) {
	c, err := ParseConstraints(keymanager.Constraints{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) > 0 {
		t.Errorf("defaults warn: %q", w)
	}
	root := testca.NewRoot(t, testca.Spec{Name: "root", Key: testca.RSA2048})
	for _, tc := range []struct {
		spec   testca.Spec
		denied bool
	}{
		{testca.Spec{Name: "weak", Key: testca.RSA1024}, false},
		{testca.Spec{Name: "sha1", SigAlg: x509.SHA1WithRSA}, false},
		{testca.Spec{Name: "good"}, false},
	} {
		err := c.Chain(chainOf(root.Issue(t, tc.spec)), keymanager.RoleServer, time.Now())
		if (err != nil) != tc.denied {
			t.Errorf("%s: denied = %v, want %v", tc.spec.Name, err, tc.denied)
		}
	}
	if c.Scheme(tls.PKCS1WithSHA1, keymanager.RoleServer, time.Now()) == nil {
		t.Error("rsa_pkcs1_sha1 may sign handshakes")
	}
	for _, v := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if c.Version(v) == nil {
			t.Errorf("%s may be negotiated", tls.VersionName(v))
		}
	}
}

func TestConstraintSyntaxErrorsHavePositions(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"lower-case-keysize", "MD5, RSA keysize < 2048", `unknown condition "keysize" (known: keySize, jdkCA, denyAfter, usage) at position 10 of`},
		{"unknown-condition", "RSA bogus", `unknown condition "bogus"`},
		{"unknown-operator", "RSA keySize => 2048", `unknown operator "=>" (known: <= < == != >= >) at position 13 of`},
		{"no-number", "RSA keySize < x", `"x" is no number of bits at position 15 of`},
		{"negative", "RSA keySize < -1", `"-1" is no number of bits`},
		{"short-keysize", "RSA keySize 2048", "keySize wants an operator"},
		{"bad-date", "SHA1 denyAfter 2019-13-01", `"2019-13-01" is no date`},
		{"two-dates", "SHA1 denyAfter 2019-01-01 & denyAfter 2020-01-01", "condition stands twice at position 28 of"},
		{"bad-usage", "SHA1 usage Web", `unknown usage "Web"`},
		{"no-usage", "SHA1 usage", "at least one use"},
		{"tls-usage", "SHA1 usage HandshakeSignature", "belongs to jdk.tls.disabledAlgorithms"},
		{"trailing-and", "RSA keySize < 1024 &", "a condition is missing"},
		{"wildcard", "TLS_RSA_*", "must begin with TLS_ and stand in jdk.tls.disabledAlgorithms"},
		{"quoted", `"RSA bogus"`, "at position 6 of"},
		{"quoted-on-lines", "\n\"MD5,\n RSA bogus\"\n", "at position 13 of"},
		{"zero-width-space", "MD5, SHA1\u200b", `has a character that none has: take it out, at position 10 of`},
		{"control-character", "MD5\x00", "has a character that none has"},
		{"names-in-quotes", `"MD5", "SHA1"`, "has a character that none has"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseConstraints(keymanager.Constraints{CertPath: &tc.value}, false)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), propertyCertPath) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// TestConstraintsMayStandOnLines puts rules as YAML's block scalars have them:
// with line breaks between them and at the end.
func TestConstraintsMayStandOnLines(t *testing.T) {
	for _, value := range []string{
		"SSLv3, TLSv1.2\n", "SSLv3,\nTLSv1.2\n", "SSLv3,\r\n\tTLSv1.2\r\n", "\"SSLv3, TLSv1.2\"\n", "SSLv3,\u00a0TLSv1.2\v\f",
	} {
		if parse(t, "", value, false).Version(tls.VersionTLS12) == nil {
			t.Errorf("%q lets TLS 1.2 through", value)
		}
	}
	weak := testca.NewRoot(t, testca.Spec{Name: "weak", Key: testca.RSA1024})
	c := parse(t, "RSA\n  keySize\n  < 2048\n", "", false)
	if c.Chain(chainOf(weak), keymanager.RoleServer, time.Now()) == nil {
		t.Error("a condition on lines of its own lets RSA-1024 through")
	}
}

func TestConstraintsActOnTheConnection(t *testing.T) {
	suite := func(id uint16) func(*Constraints) error { return func(c *Constraints) error { return c.Suite(id) } }
	version := func(v uint16) func(*Constraints) error { return func(c *Constraints) error { return c.Version(v) } }
	group := func(g tls.CurveID) func(*Constraints) error { return func(c *Constraints) error { return c.Group(g) } }
	scheme := func(s tls.SignatureScheme) func(*Constraints) error {
		return func(c *Constraints) error { return c.Scheme(s, keymanager.RoleServer, time.Now()) }
	}
	for _, tc := range []struct {
		name, value string
		ask         func(*Constraints) error
		denied      bool
	}{
		{"protocol", "TLSv1.2", version(tls.VersionTLS12), true},
		{"other-protocol", "TLSv1.2", version(tls.VersionTLS13), false},
		{"suite", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA), true},
		{"wildcard", "TLS_RSA_*", suite(tls.TLS_RSA_WITH_AES_128_GCM_SHA256), true},
		{"wildcard-spares", "TLS_RSA_*", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), false},
		{"mac", "SHA1", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA), true},
		{"aead-has-no-mac", "SHA256", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), false},
		{"cipher", "AES_128_CBC", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA), true},
		{"key-exchange", "ECDHE", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), true},
		{"static-ecdh-only", "ECDH", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), false},
		{"conditional", "RSA keySize < 2048", suite(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), false},
		{"group", "x25519", group(tls.X25519), true},
		{"group-hybrid-apart", "x25519", group(tls.X25519MLKEM768), false},
		{"group-nist", "secp384r1", group(tls.CurveP384), true},
		{"signature-scheme", "rsa_pss_rsae_sha256", scheme(tls.PSSWithSHA256), true},
		{"signature-algorithm", "RSASSA-PSS", scheme(tls.PSSWithSHA256), true},
		{"signature-algorithm-spares", "RSASSA-PSS", scheme(tls.PKCS1WithSHA256), false},
		{"signature-and-hash", "SHA256withECDSA", scheme(tls.ECDSAWithP256AndSHA256), true},
		{"signature-hash", "SHA256", scheme(tls.PKCS1WithSHA256), true},
		{"signature-other-hash", "SHA-384", scheme(tls.PKCS1WithSHA256), false},
		{"signature-curve", "secp256r1", scheme(tls.ECDSAWithP256AndSHA256), true},
		{"signature-conditional", "SHA256 denyAfter 2019-01-01", scheme(tls.PKCS1WithSHA256), false},
		{"signature-defaults", defaultTLS, scheme(tls.PKCS1WithSHA256), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.ask(parse(t, "", tc.value, false)); (err != nil) != tc.denied {
				t.Errorf("denied = %v, want %v", err, tc.denied)
			}
		})
	}
}

func TestConstraintsThatCannotActAreQuoted(t *testing.T) {
	for _, tc := range []struct {
		name, certPath, tls, want string
	}{
		{"jdkCA", "SHA1 jdkCA & usage TLSServer", "", `"SHA1 jdkCA & usage TLSServer" never applies: no trust anchor`},
		{"signed-jar", "SHA1 usage SignedJAR", "", "never applies: nothing here verifies JAR files"},
		{"typo", "SAH1", "", `"SAH1" matches no algorithm`},
		{"tls13-suite", "", "TLS_AES_128_GCM_SHA256", "does not act on TLS 1.3"},
		{"tls-typo", "", "TLSv1.4", "matches nothing"},
		{"scheme", "", "rsa_pss_rsae_sha256", "acts on this side only"},
		{"signature", "", "RSASSA-PSS", "acts on this side only"},
		{"part-with-condition", "", "SHA256 denyAfter 2030-01-01", ""},
		{"conditional-protocol", "", "TLSv1.2 denyAfter 2030-01-01", "never applies: its conditions"},
		{"good", "RSA keySize < 2048, secp256r1, MD5", "TLSv1.2, RC4, x25519, TLS_RSA_*, SHA1, TLSv1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(parse(t, tc.certPath, tc.tls, false).Warnings(), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("warnings %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzParseConstraints(f *testing.F) {
	for _, s := range []string{defaultCertPath, defaultTLS, "", ",", "\"\"", "RSA keySize", "&", "a &", "\"a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseConstraints(keymanager.Constraints{CertPath: &s, TLS: &s}, false)
		if (c == nil) == (err == nil) {
			t.Fatalf("constraints %v with error %v", c, err)
		}
	})
}
