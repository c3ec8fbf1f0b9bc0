// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// jdkRule is one rule of the JDK as a case: what each of us makes of it. Empty
// is no credential.
type jdkRule struct {
	name                  string // of the rule
	from                  string // the JDK's test, class or bug that it comes from
	entries               entries
	hello                 *keymanager.Hello
	sunx509, pkix, compat string
}

// ruleWorld makes the certificates of the rules.
type ruleWorld struct {
	t       *testing.T
	ec, rsa *testca.Cert
	weak    *testca.Cert // a root signed with SHA-1
}

const (
	ds = x509.KeyUsageDigitalSignature
	ke = x509.KeyUsageKeyEncipherment
	ka = x509.KeyUsageKeyAgreement
)

func newRuleWorld(t *testing.T) *ruleWorld {
	return &ruleWorld{
		t: t, ec: testca.NewRoot(t, testca.Spec{Name: "EC CA"}),
		rsa:  testca.NewRoot(t, testca.Spec{Name: "RSA CA", Key: testca.RSA2048}),
		weak: testca.NewRoot(t, testca.Spec{Name: "old CA", Key: testca.RSA2048, SigAlg: x509.SHA1WithRSA}),
	}
}

func (w *ruleWorld) under(ca *testca.Cert, alias string, s testca.Spec) keymanager.Entry {
	return entry(alias, ca.Issue(w.t, s))
}

// by issues a certificate of a key type that Java calls right for a server and a
// client: the usage that it wants is there.
func (w *ruleWorld) by(alias string, key testca.KeyType, names ...string) keymanager.Entry {
	ca := w.ec
	if key == testca.RSA2048 {
		ca = w.rsa
	}
	return w.under(ca, alias, testca.Spec{Key: key, DNS: names, KeyUsage: ds | ka, NoEKU: true})
}

func (w *ruleWorld) usage(alias string, key testca.KeyType, u x509.KeyUsage, eku ...x509.ExtKeyUsage) keymanager.Entry {
	ca := w.ec
	if key == testca.RSA2048 {
		ca = w.rsa
	}
	return w.under(ca, alias, testca.Spec{Key: key, KeyUsage: u, EKU: eku, NoEKU: eku == nil})
}

func (w *ruleWorld) expired(alias string, key testca.KeyType, names ...string) keymanager.Entry {
	return w.under(w.ec, alias, testca.Spec{Key: key, DNS: names, KeyUsage: ds | ka, NoEKU: true, NotBefore: days(-9), NotAfter: days(-1)})
}

// TestRulesOfTheJDK re-expresses what concerns choosing in the JDK's own tests
// and source (17 to 25), beside what we make of it.
func TestRulesOfTheJDK(t *testing.T) {
	w := newRuleWorld(t)
	for _, rules := range [][]jdkRule{w.usageRules(), w.rankingRules(), w.tlsLayerRules(), w.clientRules(), w.nameRules(), w.chainRules()} {
		for _, r := range rules {
			t.Run(r.name, func(t *testing.T) {
				for _, side := range []struct {
					name string
					mk   maker
					want string
				}{{"sunx509", NewUnchecked, r.sunx509}, {"pkix", New, r.pkix}, {"jdk_compat", newAsJDK, r.compat}} {
					if got := pick(t, mustNew(t, side.mk, keymanager.Env{}, r.entries...), r.hello); got != side.want {
						t.Errorf("%s: %s chooses %q, want %q", r.from, side.name, got, side.want)
					}
				}
			})
		}
	}
}

// usageRules: the sound entry stands last, so that a checked one is told from one
// that isn't.
func (w *ruleWorld) usageRules() []jdkRule {
	const server, client = x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	good := w.by("good", testca.P256)
	goodRSA := w.by("good", testca.RSA2048)
	at := "CertChecking"
	rsaFirst := func(h *keymanager.Hello) *keymanager.Hello {
		return schemes(h, tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP256AndSHA256)
	}
	return []jdkRule{
		{"rsa_without_signature_server", at, entries{w.usage("x", testca.RSA2048, ke), goodRSA}, rsaFirst(modern("")), "x", "x", "x"},
		{"rsa_without_signature_client", at, entries{w.usage("x", testca.RSA2048, ke), goodRSA}, rsaFirst(client0()), "x", "good", "good"},
		{"rsa_without_either_server", at, entries{w.usage("x", testca.RSA2048, ka), goodRSA}, rsaFirst(modern("")), "x", "good", "good"},
		{"ec_without_signature_server", at, entries{w.usage("x", testca.P256, ka), good}, modern(""), "x", "good", "good"},
		{"ec_without_signature_client", at, entries{w.usage("x", testca.P256, ka), good}, client0(), "x", "good", "good"},
		{"ec_without_agreement_server", at + ", deviation 1", entries{w.usage("x", testca.P256, ds), good}, modern(""), "x", "x", "good"},
		{"ec_without_agreement_client", at, entries{w.usage("x", testca.P256, ds), good}, client0(), "x", "x", "x"},
		{"client_auth_only_server", at, entries{w.usage("x", testca.P256, ds|ka, client), good}, modern(""), "x", "good", "good"},
		{"server_auth_only_client", at, entries{w.usage("x", testca.P256, ds|ka, server), good}, client0(), "x", "good", "good"},
		{"any_usage", "X509KeyManagerCertChecking.CheckType", entries{w.usage("x", testca.P256, ds|ka, x509.ExtKeyUsageAny), good}, modern(""), "x", "x", "x"},
		{"microsoft_server_gated", "X509KeyManagerCertChecking.CheckType", entries{w.usage("x", testca.P256, ds|ka, x509.ExtKeyUsageMicrosoftServerGatedCrypto), good}, modern(""), "x", "x", "x"},
		{"netscape_server_gated_is_none_for_clients", "X509KeyManagerCertChecking.CheckType", entries{w.usage("x", testca.P256, ds|ka, x509.ExtKeyUsageNetscapeServerGatedCrypto), good}, client0(), "x", "good", "good"},
		{"eddsa_needs_nothing", "X509KeyManagerCertChecking.CheckType", entries{w.usage("x", testca.Ed25519, ka), w.by("good", testca.Ed25519)},
			schemes(modern(""), tls.Ed25519, tls.ECDSAWithP256AndSHA256), "x", "x", "x"},
		{"preferred_then_expired_then_mismatch", at, entries{w.usage("mismatch", testca.P256, ds|ka, client), w.expired("expired", testca.P256), good}, modern(""), "mismatch", "good", "good"},
		{"expired_before_mismatch", at, entries{w.usage("mismatch", testca.P256, ds|ka, client), w.expired("expired", testca.P256)}, modern(""), "mismatch", "expired", "expired"},
		{"key_usage_without_a_use", "AlgorithmChecker, deviation 1", entries{w.usage("x", testca.P256, x509.KeyUsageEncipherOnly)}, modern(""), "x", "x", ""},
		{"time_stamping_beside_perfect_rsa", "NoGoodKey (8278560)", entries{w.usage("a", testca.P256, ds|ka, x509.ExtKeyUsageTimeStamping), goodRSA}, client0(), "a", "good", "good"},
		{"time_stamping_first_type_of_a_server", "NoGoodKey, deviation 2", entries{w.usage("a", testca.P256, ds|ka, x509.ExtKeyUsageTimeStamping), goodRSA}, modern(""), "a", "good", "a"},
	}
}

// client0 is a request for a client certificate that names no authority.
func client0() *keymanager.Hello { return client() }

func (w *ruleWorld) rankingRules() []jdkRule {
	at := "X509KeyManagerImpl.chooseAlias"
	a, b := w.by("a", testca.P256, "a.test"), w.by("b", testca.P256, "b.test")
	publicA, publicB := w.under(w.ec, "a", testca.Spec{DNS: []string{"a.test"}}), w.under(w.ec, "b", testca.Spec{DNS: []string{"b.test"}})
	future := w.under(w.ec, "future", testca.Spec{DNS: []string{"a.test"}, KeyUsage: ds | ka, NotBefore: days(1), NotAfter: days(9)})
	return []jdkRule{
		{"name", "SSLSocketSNISensitive", entries{a, b}, modern("b.test"), "a", "b", "b"},
		{"no_name", at, entries{a, b}, modern(""), "a", "a", "a"},
		{"no_match", at, entries{a, b}, modern("c.test"), "a", "a", "a"},
		{"public_ca_certificate_by_name", at + ", deviation 1", entries{publicA, publicB}, modern("b.test"), "a", "b", "a"},
		{"valid_with_signature_only_against_expired_with_agreement", at + ", deviation 1", entries{w.expired("old", testca.P256), publicA}, modern(""), "old", "a", "old"},
		{"match_expired_against_mismatch_valid", at, entries{w.expired("old", testca.P256, "b.test"), a}, modern("b.test"), "old", "a", "a"},
		{"not_yet_valid_counts_as_expired", at, entries{future, w.expired("old", testca.P256, "a.test")}, modern("a.test"), "future", "future", "future"},
		{"expired_as_last_resort", at, entries{w.expired("old", testca.P256)}, modern("a.test"), "old", "old", "old"},
		{"wildcard_before_exact_in_the_store", at + ", deviation 9", entries{w.by("wild", testca.P256, "*.a.test"), w.by("exact", testca.P256, "x.a.test")}, modern("x.a.test"), "wild", "exact", "wild"},
		{"expired_match_and_expired_mismatch", at + ", deviation 9", entries{w.expired("other", testca.P256, "b.test"), w.expired("match", testca.P256, "a.test")}, modern("a.test"), "other", "match", "other"},
		{"builders_in_order", at, entries{a, inBuilder(1, w.by("second", testca.P256, "a.test"))}, modern("a.test"), "a", "a", "a"},
		{"imperfect_builder_then_perfect", at, entries{w.expired("old", testca.P256), inBuilder(1, a)}, modern(""), "old", "a", "a"},
		{"imperfect_in_both_builders", at, entries{w.usage("mismatch", testca.P256, ke), inBuilder(1, w.expired("old", testca.P256))}, modern(""), "mismatch", "old", "old"},
	}
}

func (w *ruleWorld) tlsLayerRules() []jdkRule {
	at := "X509Authentication, CertificateMessage"
	ecA, rsaZ := w.by("ec", testca.P256, "a.test"), w.by("rsa", testca.RSA2048, "z.test")
	old := w.expired("ec", testca.P256)
	both := keymanager.AuthRSA | keymanager.AuthECDSA
	rsaFirst := []tls.SignatureScheme{tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384}
	p384 := w.by("p384", testca.P384)
	p521 := w.by("p521", testca.P521)
	ed := w.by("ed", testca.Ed25519)
	return []jdkRule{
		{"types_in_the_peers_order", "PreferredKey (6302644)", entries{rsaZ, ecA}, modern(""), "ec", "ec", "ec"},
		{"types_in_the_peers_order_rsa", "PreferredKey (6302644)", entries{ecA, rsaZ}, schemes(modern(""), rsaFirst...), "rsa", "rsa", "rsa"},
		{"unknown_type", "SelectOneKeyOutOfMany (4387949)", entries{ecA, rsaZ}, schemes(modern(""), tls.Ed25519), "", "", ""},
		{"each_type_found", "SelectOneKeyOutOfMany (4387949)", entries{ecA, rsaZ}, schemes(modern(""), tls.PSSWithSHA256, tls.PKCS1WithSHA256), "rsa", "rsa", "rsa"},
		{"expired_of_the_first_type", at + ", deviation 2", entries{old, w.by("rsa", testca.RSA2048)}, modern(""), "ec", "rsa", "ec"},
		{"expired_of_the_first_type_tls12", at + ", deviation 2", entries{old, w.by("rsa", testca.RSA2048)}, tls12(modern(""), both), "ec", "rsa", "ec"},
		{"mismatch_of_the_first_type", at + ", deviation 2", entries{ecA, rsaZ}, modern("z.test"), "ec", "rsa", "ec"},
		{"pkcs1_in_front_makes_rsa_the_first_type", at + ", deviation 8", entries{w.by("ec", testca.P256), w.by("rsa", testca.RSA2048)},
			schemes(modern(""), tls.PKCS1WithSHA256, tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256), "rsa", "ec", "rsa"},
		{"pkcs1_alone_signs_no_tls13", at, entries{rsaZ}, schemes(modern(""), tls.PKCS1WithSHA256), "", "", ""},
		{"curve_without_its_scheme", at + ", deviation 8", entries{p384, w.by("p256", testca.P256)}, schemes(modern(""), tls.ECDSAWithP256AndSHA256), "p256", "p256", ""},
		{"curve_without_its_scheme_tls12", at + ", deviation 8", entries{p384}, tls12(schemes(modern(""), tls.ECDSAWithP256AndSHA256), both), "p384", "p384", ""},
		{"curve_by_store_order", at + ", deviation 8", entries{p384, w.by("p256", testca.P256)}, modern(""), "p384", "p256", "p384"},
		{"curve_not_in_the_groups_tls12", at, entries{p521, w.by("rsa", testca.RSA2048)}, tls12(modern(""), both), "rsa", "rsa", "rsa"},
		{"curve_not_in_the_groups_drops_the_type", at + ", deviation 8", entries{p521, w.by("p256", testca.P256), w.by("rsa", testca.RSA2048)}, tls12(modern(""), both), "p256", "p256", "rsa"},
		{"ecdsa_suites_first_tls12", at + ", deviation 2", entries{w.by("rsa", testca.RSA2048), w.by("ec", testca.P256)}, tls12(schemes(modern(""), rsaFirst...), both), "ec", "rsa", "ec"},
		{"rsa_suites_only_tls12", at, entries{ecA, rsaZ}, tls12(modern(""), keymanager.AuthRSA), "rsa", "rsa", "rsa"},
		{"ed25519_by_ecdsa_suites_tls12", at, entries{ed}, tls12(schemes(modern(""), tls.Ed25519, tls.ECDSAWithP256AndSHA256), keymanager.AuthECDSA), "ed", "ed", "ed"},
		{"peer_of_one_curve", "PeerConstraintsCheck", entries{w.by("p256", testca.P256)}, schemes(modern(""), tls.ECDSAWithP384AndSHA384), "", "", ""},
		{"no_scheme_at_all", "X509KeyManagerImpl, peer algorithms empty", entries{ecA}, schemes(modern("")), "", "", ""},
	}
}

func (w *ruleWorld) clientRules() []jdkRule {
	at := "X509KeyManagerImpl.chooseAlias"
	ec, rsa := w.by("ec", testca.P256), w.by("rsa", testca.RSA2048)
	withEd := func() *keymanager.Hello {
		return schemes(client0(), tls.Ed25519, tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256, tls.PKCS1WithSHA256)
	}
	inter := w.rsa.Issue(w.t, testca.Spec{Name: "intermediate", IsCA: true})
	below := w.under(inter, "below", testca.Spec{KeyUsage: ds | ka, NoEKU: true})
	stranger := testca.SelfSigned(w.t, testca.Spec{Name: "stranger"}).Cert.RawSubject
	return []jdkRule{
		{"first_type_first", at, entries{rsa, ec}, client0(), "ec", "ec", "ec"},
		{"store_order_where_nothing_has_the_first_type", at + ", deviation 2", entries{rsa, ec}, withEd(), "ec", "ec", "rsa"},
		{"good_builder_before_better_type", at + ", deviation 2", entries{rsa, inBuilder(1, ec)}, client0(), "ec", "ec", "rsa"},
		{"imperfect_by_class_then_type", at, entries{w.usage("mismatch", testca.P256, ke), w.expired("old", testca.RSA2048)}, client0(), "mismatch", "old", "old"},
		{"issuer", "CertChecking", entries{ec, rsa}, client(w.rsa.Cert.RawSubject), "rsa", "rsa", "rsa"},
		{"issuer_of_an_intermediate", "X509KeyManagerImpl, issuers", entries{ec, below}, client(w.rsa.Cert.RawSubject), "below", "below", "below"},
		{"intermediate_as_issuer", "X509KeyManagerImpl, issuers", entries{ec, below}, client(inter.Cert.RawSubject), "below", "below", "below"},
		{"leaf_subject_is_no_issuer", "X509KeyManagerImpl, issuers", entries{ec}, client(stranger), "", "", ""},
		{"no_issuer_named", "CertChecking", entries{ec, rsa}, client0(), "ec", "ec", "ec"},
		{"names_do_not_matter", at, entries{w.by("a", testca.P256, "a.test"), w.by("b", testca.P256, "b.test")}, client0(), "a", "a", "a"},
	}
}

func (w *ruleWorld) nameRules() []jdkRule {
	at := "HostnameChecker, deviation 9"
	other := w.by("other", testca.P256, "o.test")
	named := func(name string) entries { return entries{other, w.by("x", testca.P256, name)} }
	cn := w.under(w.ec, "x", testca.Spec{Name: "cn.test", KeyUsage: ds | ka})
	cnBeside := w.under(w.ec, "x", testca.Spec{Name: "cn.test", DNS: []string{"y.test"}, KeyUsage: ds | ka})
	return []jdkRule{
		{"case", "HostnameChecker", named("A.Test"), modern("a.test"), "other", "x", "x"},
		{"wildcard", "SNIWildcardMatching", named("*.a.test"), modern("b.a.test"), "other", "x", "x"},
		{"wildcard_is_one_label", "SNIWildcardMatching", named("*.test"), modern("b.a.test"), "other", "other", "other"},
		{"common_name", "HostnameChecker", entries{other, cn}, modern("cn.test"), "other", "x", "x"},
		{"common_name_beside_dns_name", "HostnameChecker", entries{other, cnBeside}, modern("cn.test"), "other", "other", "other"},
		{"bare_wildcard", "HostnameChecker", named("*"), modern("a"), "other", "other", "other"},
		{"partial_wildcard", at, named("a*.test"), modern("ab.test"), "other", "other", "x"},
		{"wildcard_in_the_middle", at, named("a.*.test"), modern("a.b.test"), "other", "other", "x"},
		{"dot_at_the_end", "EndingDotHostname, deviation 9", named("a.test."), modern("a.test"), "other", "x", "other"},
		{"underscore", "SNIHostName, deviation 9", named("a_b.test"), modern("a_b.test"), "other", "x", "other"},
	}
}

func (w *ruleWorld) chainRules() []jdkRule {
	at := "X509KeyManagerImpl, algorithm constraints of the peer"
	ecByRSA := w.under(w.rsa, "rsaCA", testca.Spec{KeyUsage: ds | ka})
	rooted := withRoot(w.under(w.weak, "weak", testca.Spec{KeyUsage: ds | ka}), w.weak)
	bare := w.under(w.weak, "weak", testca.Spec{KeyUsage: ds | ka})
	self := entry("self", testca.SelfSigned(w.t, testca.Spec{Key: testca.P384, KeyUsage: ds | ka}))
	pss := w.under(w.rsa, "pss", testca.Spec{KeyUsage: ds | ka, SigAlg: x509.SHA384WithRSAPSS})
	ecdsaOnly := func() *keymanager.Hello { return schemes(modern(""), tls.ECDSAWithP256AndSHA256) }
	return []jdkRule{
		{"signature_not_offered", at, entries{ecByRSA}, ecdsaOnly(), "rsaCA", "", ""},
		{"signature_not_offered_passed_over", at, entries{ecByRSA, w.by("ec", testca.P256)}, ecdsaOnly(), "rsaCA", "ec", "ec"},
		{"curve_of_the_scheme_is_nothing_to_signatures", at, entries{w.under(testca.NewRoot(w.t, testca.Spec{Name: "p384", Key: testca.P384, SigAlg: x509.ECDSAWithSHA256}), "ec", testca.Spec{SigAlg: x509.ECDSAWithSHA256, KeyUsage: ds | ka})}, ecdsaOnly(), "ec", "ec", "ec"},
		{"root_with_sha1", at + ", deviation 3", entries{rooted}, modern(""), "weak", "weak", ""},
		{"without_its_root", at, entries{bare}, modern(""), "weak", "weak", "weak"},
		{"self_signed_leaf", "SelfSignedCertKeyType (8379191), deviation 3", entries{self}, schemes(modern(""), tls.ECDSAWithP384AndSHA384), "self", "self", "self"},
		{"pss_by_any_hash", at + ", deviation 7", entries{pss}, schemes(modern(""), tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256), "pss", "", "pss"},
	}
}

// TestConstraintsOfTheJDK is AlgorithmConstraintsCheck: a signature algorithm of
// jdk.tls.disabledAlgorithms keeps the chain out, and what is unchecked in, but
// for keys that could sign no handshake.
func TestConstraintsOfTheJDK(t *testing.T) {
	w := newRuleWorld(t)
	chain := w.under(w.rsa, "ec", testca.Spec{Key: testca.P256, KeyUsage: ds | ka, NoEKU: true})
	own := w.by("ec", testca.P256)
	for _, tt := range []struct {
		name, rules string
		e           keymanager.Entry
		mk          maker
		want        string
	}{
		{"sunx509", "SHA256withRSA", chain, NewUnchecked, "ec"},
		{"pkix", "SHA256withRSA", chain, New, ""},
		{"jdk_compat", "SHA256withRSA", chain, newAsJDK, ""},
		{"sunx509_cannot_sign", "SHA256withECDSA", own, NewUnchecked, ""},
		{"pkix_cannot_sign", "SHA256withECDSA", own, New, ""},
		{"jdk_compat_cannot_sign", "SHA256withECDSA", own, newAsJDK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := keymanager.Env{Options: keymanager.Options{Constraints: keymanager.Constraints{TLS: &tt.rules}}}
			if got := pick(t, mustNew(t, tt.mk, env, tt.e), modern("")); got != tt.want {
				t.Errorf("chosen %q, want %q", got, tt.want)
			}
		})
	}
}
