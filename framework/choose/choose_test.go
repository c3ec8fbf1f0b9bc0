// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

type entries = []keymanager.Entry

// TestChoice holds the ranking: one keystore, one hello, the alias that each
// kind of Chooser hands out; empty is none.
func TestChoice(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "EC CA"})
	rsaCA := testca.NewRoot(t, testca.Spec{Name: "RSA CA", Key: testca.RSA2048})
	leaf := func(s testca.Spec) *testca.Cert {
		if s.Key == testca.RSA2048 {
			return rsaCA.Issue(t, s)
		}
		return ca.Issue(t, s)
	}
	named := func(names ...string) testca.Spec { return testca.Spec{DNS: names} }
	of := func(k testca.KeyType, names ...string) testca.Spec { return testca.Spec{Key: k, DNS: names} }
	expired := func(s testca.Spec) testca.Spec { s.NotBefore, s.NotAfter = days(-9), days(-1); return s }
	future := func(s testca.Spec) testca.Spec { s.NotBefore, s.NotAfter = days(1), days(9); return s }
	eku := func(s testca.Spec, u ...x509.ExtKeyUsage) testca.Spec { s.EKU = u; return s }
	ku := func(s testca.Spec, u x509.KeyUsage) testca.Spec { s.KeyUsage = u; return s }

	a, b := leaf(named("a.test")), leaf(named("b.test"))
	rsa, ec := leaf(of(testca.RSA2048, "w.test")), leaf(of(testca.P256, "w.test"))
	p384, p521, ed := leaf(of(testca.P384, "w.test")), leaf(of(testca.P521, "w.test")), leaf(of(testca.Ed25519, "w.test"))
	ecByRSA := rsaCA.Issue(t, named("w.test"))
	clientOnly := leaf(eku(named("w.test"), x509.ExtKeyUsageClientAuth))
	both := keymanager.AuthRSA | keymanager.AuthECDSA

	tests := []struct {
		name      string
		entries   entries
		hello     *keymanager.Hello
		checked   string
		unchecked string
	}{
		{"exact_name", entries{entry("a", a), entry("b", b)}, modern("b.test"), "b", "a"},
		{"no_name", entries{entry("a", a), entry("b", b)}, modern(""), "a", "a"},
		{"unknown_name", entries{entry("a", a), entry("b", b)}, modern("c.test"), "a", "a"},
		{"exact_before_wildcard", entries{entry("wild", leaf(named("*.w.test"))), entry("exact", leaf(named("a.w.test")))}, modern("a.w.test"), "exact", "wild"},
		{"wildcard_before_expired_exact", entries{entry("exact", leaf(expired(named("a.w.test")))), entry("wild", leaf(named("*.w.test")))}, modern("a.w.test"), "wild", "exact"},
		{"name_before_scheme_order", entries{entry("e", leaf(of(testca.P256, "e.test"))), entry("r", leaf(of(testca.RSA2048, "r.test")))}, modern("r.test"), "r", "e"},
		{"wildcard_before_scheme_order", entries{entry("e", leaf(of(testca.P256, "e.test"))), entry("r", leaf(of(testca.RSA2048, "*.r.test")))}, modern("a.r.test"), "r", "e"},

		{"fresh_before_expired", entries{entry("old", leaf(expired(named("w.test")))), entry("new", ec)}, modern("w.test"), "new", "old"},
		{"fresh_before_expired_without_name", entries{entry("old", leaf(expired(named("w.test")))), entry("new", ec)}, modern(""), "new", "old"},
		{"valid_rsa_before_expired_ecdsa", entries{entry("old", leaf(expired(named("w.test")))), entry("new", rsa)}, modern("w.test"), "new", "old"},
		{"mismatch_before_expired_match", entries{entry("old", leaf(expired(named("w.test")))), entry("a", a)}, modern("w.test"), "a", "old"},
		{"only_expired", entries{entry("old", leaf(expired(named("w.test"))))}, modern("w.test"), "old", "old"},
		{"expired_and_future_are_one_class", entries{entry("future", leaf(future(named("w.test")))), entry("old", leaf(expired(named("w.test"))))}, modern("w.test"), "future", "future"},
		{"expired_match_before_expired_mismatch", entries{entry("a", leaf(expired(named("a.test")))), entry("w", leaf(expired(named("w.test"))))}, modern("w.test"), "w", "a"},

		{"server_usage_before_client_only", entries{entry("c", clientOnly), entry("s", ec)}, modern("w.test"), "s", "c"},
		{"expired_before_wrong_usage", entries{entry("c", clientOnly), entry("old", leaf(expired(named("w.test"))))}, modern("w.test"), "old", "c"},
		{"client_only_alone", entries{entry("c", clientOnly)}, modern("w.test"), "c", "c"},
		{"digital_signature_suffices_for_ecdsa", entries{
			entry("old", leaf(expired(ku(named("w.test"), x509.KeyUsageDigitalSignature|x509.KeyUsageKeyAgreement)))),
			entry("new", ec),
		}, modern("w.test"), "new", "old"},
		{"key_encipherment_suffices_for_rsa", entries{
			entry("c", clientOnly), entry("r", leaf(ku(of(testca.RSA2048, "w.test"), x509.KeyUsageKeyEncipherment))),
		}, modern("w.test"), "r", "c"},

		{"scheme_order_of_the_peer", entries{entry("rsa", rsa), entry("ec", ec)}, modern("w.test"), "ec", "ec"},
		{"scheme_order_reversed", entries{entry("ec", ecByRSA), entry("rsa", rsa)},
			schemes(modern("w.test"), tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP256AndSHA256), "rsa", "rsa"},
		{"curve_by_scheme_order", entries{entry("p384", p384), entry("p256", ec)}, modern("w.test"), "p256", "p384"},
		{"rsa_only_peer", entries{entry("ec", ec), entry("rsa", rsa)}, schemes(modern("w.test"), tls.PSSWithSHA256, tls.PKCS1WithSHA256), "rsa", "rsa"},
		{"pss_only_peer_verifies_no_rsa_chain", entries{entry("rsa", rsa)}, schemes(modern("w.test"), tls.PSSWithSHA256), "", "rsa"},
		{"peer_without_ed25519", entries{entry("ed", ed), entry("rsa", rsa)}, modern("w.test"), "rsa", "rsa"},
		{"ed25519_alone", entries{entry("ed", ed)}, modern("w.test"), "", ""},
		{"ed25519_for_who_offers_it", entries{entry("ed", ed)}, schemes(modern("w.test"), tls.Ed25519, tls.ECDSAWithP256AndSHA256), "ed", "ed"},
		{"peer_without_p521", entries{entry("p521", p521)}, modern("w.test"), "", ""},
		{"pkcs1_signs_no_tls13", entries{entry("rsa", rsa)}, schemes(modern("w.test"), tls.PKCS1WithSHA256), "", ""},
		{"no_scheme_at_all", entries{entry("ec", ec)}, schemes(modern("w.test")), "", ""},
		{"unknown_schemes_are_passed_over", entries{entry("ec", ec)}, schemes(modern("w.test"), 0x0a0a, 0xfe00, tls.ECDSAWithP256AndSHA256), "ec", "ec"},

		{"tls12_ecdsa_schemes_but_rsa_suites", entries{entry("ec", ec), entry("rsa", rsa)}, tls12(modern("w.test"), keymanager.AuthRSA), "rsa", "rsa"},
		{"tls12_rsa_suites_only", entries{entry("ec", ec)}, tls12(modern("w.test"), keymanager.AuthRSA), "", ""},
		{"tls12_ecdsa_suites_only", entries{entry("rsa", rsa), entry("ec", ec)}, tls12(modern("w.test"), keymanager.AuthECDSA), "ec", "ec"},
		{"tls12_no_common_suite", entries{entry("rsa", rsa), entry("ec", ec)}, tls12(modern("w.test"), 0), "", ""},
		{"tls12_curve_not_offered", entries{entry("p521", p521), entry("rsa", rsa)}, tls12(modern("w.test"), both), "rsa", "rsa"},
		{"tls12_curve_by_any_scheme", entries{entry("p384", p384)}, tls12(schemes(modern("w.test"), tls.ECDSAWithP256AndSHA256), both), "p384", "p384"},
		{"tls12_pkcs1", entries{entry("rsa", rsa)}, tls12(schemes(modern("w.test"), tls.PKCS1WithSHA256), both), "rsa", "rsa"},
		{"tls12_sha1_only", entries{entry("rsa", rsa), entry("ec", ec)}, tls12(schemes(modern("w.test"), tls.PKCS1WithSHA1, tls.ECDSAWithSHA1), both), "", ""},

		{"chain_not_covered", entries{entry("r", ecByRSA), entry("e", ec)}, schemes(modern("w.test"), tls.ECDSAWithP256AndSHA256), "e", "r"},
		{"self_signed_top_excepted", entries{withRoot(entry("e", rsaSHA512Root(t)), rsaSHA512Root(t).Issuer)},
			schemes(modern("w.test"), tls.ECDSAWithP256AndSHA256, tls.PKCS1WithSHA256), "e", "e"},
		{"self_signed_leaf", entries{entry("s", testca.SelfSigned(t, of(testca.P384, "w.test")))}, schemes(modern("w.test"), tls.ECDSAWithP384AndSHA384), "s", "s"},

		{"alias_demanded", entries{entry("a", a), entry("b", b)}, demand(modern("a.test"), "b"), "b", "b"},
		{"alias_without_case", entries{entry("a", a), entry("Böse", b)}, demand(modern("a.test"), "bÖSE"), "Böse", "Böse"},
		{"alias_unknown", entries{entry("a", a)}, demand(modern("a.test"), "nope"), "", ""},
		{"alias_whose_key_the_peer_does_not_verify", entries{entry("a", a), entry("ed", ed)}, demand(modern("w.test"), "ed"), "", ""},
		{"alias_in_two_builders_ranked", entries{entry("x", leaf(expired(named("w.test")))), inBuilder(1, entry("x", ec))}, demand(modern("w.test"), "x"), "x", "x"},

		{"builder_before_store_order", entries{inBuilder(1, entry("second", ec)), inBuilder(0, entry("first", ec))}, modern("w.test"), "first", "first"},
		{"aliases_with_dots_and_digits", entries{entry("1.0.www.example.test", ec)}, modern("w.test"), "1.0.www.example.test", "1.0.www.example.test"},

		{"client_by_usage", entries{entry("s", ec), entry("c", clientOnly)}, client(), "c", "s"},
		{"client_any_usage", entries{entry("s", ec), entry("any", leaf(eku(named("w.test"), x509.ExtKeyUsageAny)))}, client(), "any", "s"},
		{"client_server_only_as_last_resort", entries{entry("s", ec)}, client(), "s", "s"},
		{"client_by_issuer", entries{entry("r", leaf(eku(of(testca.RSA2048), x509.ExtKeyUsageClientAuth))), entry("c", clientOnly)}, client(rsaCA.Cert.RawSubject), "r", "r"},
		{"client_issuer_unknown", entries{entry("c", clientOnly)}, client(rsaCA.Cert.RawSubject), "", ""},
		{"client_own_subject_is_no_issuer", entries{entry("c", clientOnly)}, client(clientOnly.Cert.RawSubject), "", ""},
		{"client_ignores_name_suites_and_groups", entries{entry("c", clientOnly)}, tls12(client(), 0), "c", "c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := pick(t, mustNew(t, New, keymanager.Env{}, tt.entries...), tt.hello); got != tt.checked {
				t.Errorf("New chooses %q, want %q", got, tt.checked)
			}
			if got := pick(t, mustNew(t, NewUnchecked, keymanager.Env{}, tt.entries...), tt.hello); got != tt.unchecked {
				t.Errorf("NewUnchecked chooses %q, want %q", got, tt.unchecked)
			}
		})
	}
}

// rsaSHA512Root issues a P-256 leaf signed with SHA-256 under a root that signed
// itself with SHA-512.
func rsaSHA512Root(t *testing.T) *testca.Cert {
	t.Helper()
	root := testca.NewRoot(t, testca.Spec{Name: "root", Key: testca.RSA2048, SigAlg: x509.SHA512WithRSA})
	return root.Issue(t, testca.Spec{DNS: []string{"w.test"}, SigAlg: x509.SHA256WithRSA})
}

func TestDefaultAlias(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	a := entry("a", ca.Issue(t, testca.Spec{DNS: []string{"a.test"}}))
	b := entry("b", ca.Issue(t, testca.Spec{DNS: []string{"b.test"}}))
	old := entry("old", ca.Issue(t, testca.Spec{DNS: []string{"old.test"}, NotBefore: days(-9), NotAfter: days(-1)}))
	ed := entry("ed", ca.Issue(t, testca.Spec{DNS: []string{"ed.test"}, Key: testca.Ed25519}))
	tests := []struct {
		name, defaultAlias string
		hello              *keymanager.Hello
		want               string
	}{
		{"no_name", "B", modern(""), "b"},
		{"unknown_name", "b", modern("c.test"), "b"},
		{"known_name", "b", modern("a.test"), "a"},
		{"name_known_by_a_last_resort_only", "b", modern("old.test"), "b"},
		{"last_resort_as_default", "old", modern(""), "old"},
		{"peer_cannot_use_it", "ed", modern(""), "a"},
		{"demanded_alias_goes_first", "b", demand(modern(""), "a"), "a"},
		{"not_for_clients", "b", client(), "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := keymanager.Env{Options: keymanager.Options{DefaultAlias: tt.defaultAlias}}
			c := mustNew(t, New, env, a, b, old, ed)
			if got := pick(t, c, tt.hello); got != tt.want {
				t.Errorf("chosen %q, want %q", got, tt.want)
			}
			if v := c.Verdicts(tt.hello)[0]; v.Alias != tt.want || v.Out {
				t.Errorf("first verdict %+v, want the one of %q", v, tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	good := entry("good", ca.Issue(t, testca.Spec{}))
	broken := keymanager.Entry{Alias: "broken", Kind: keymanager.KindKey, Reason: "wrong key password"}
	badSyntax := "RSA keysize ? 1"
	tests := []struct {
		name    string
		entries entries
		options keymanager.Options
		want    string
	}{
		{"no_entry", nil, keymanager.Options{}, "no usable key entry: there is no entry at all"},
		{"no_usable_entry", entries{broken}, keymanager.Options{}, `no usable key entry: "broken" in keystore 0: wrong key password`},
		{"unknown_alias", entries{good, broken}, keymanager.Options{Aliases: []string{"GOOD", "nope"}}, `alias "nope": no such entry; there are "good"`},
		{"unusable_alias", entries{good, broken}, keymanager.Options{Aliases: []string{"broken"}}, `alias "broken" can't be served: wrong key password`},
		{"unknown_default", entries{good}, keymanager.Options{DefaultAlias: "nope"}, `default alias "nope": no such entry; there are "good"`},
		{"constraint_syntax", entries{good}, keymanager.Options{Constraints: keymanager.Constraints{CertPath: &badSyntax}}, "jdk.certpath.disabledAlgorithms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(1, tt.entries, keymanager.Env{Options: tt.options})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestUnusableEntries(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	good := ca.Issue(t, testca.Spec{DNS: []string{"w.test"}})
	other := ca.Issue(t, testca.Spec{DNS: []string{"w.test"}})
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*keymanager.Entry)) keymanager.Entry {
		e := entry("bad", good)
		change(&e)
		return e
	}
	tests := []struct {
		name  string
		entry keymanager.Entry
		want  string
	}{
		{"trusted", with(func(e *keymanager.Entry) { e.Kind = keymanager.KindTrusted }), "no private key"},
		{"not_usable", with(func(e *keymanager.Entry) { e.Usable, e.Reason = false, "wrong key password" }), "wrong key password"},
		{"no_key", with(func(e *keymanager.Entry) { e.Key = nil }), "no key or no certificate"},
		{"no_chain", with(func(e *keymanager.Entry) { e.Chain = nil }), "no key or no certificate"},
		{"garbage", with(func(e *keymanager.Entry) { e.Chain = [][]byte{{1}} }), "can't be parsed"},
		{"garbage_above", with(func(e *keymanager.Entry) { e.Chain = append(e.Chain, []byte{1}) }), "certificate 1 of the chain can't be read"},
		{"foreign_key", with(func(e *keymanager.Entry) { e.Key = keymanager.FromSigner(other.Key) }), "does not match"},
		{"curve", entry("bad", ca.Issue(t, testca.Spec{Signer: p224})), "curve P-224"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustNew(t, New, keymanager.Env{}, tt.entry, entry("good", good))
			if got := pick(t, c, modern("w.test")); got != "good" {
				t.Errorf("chosen %q", got)
			}
			v := c.Verdicts(modern("w.test"))[1]
			if !v.Out || v.Rule != RuleUnusable || !strings.Contains(v.Reason, tt.want) {
				t.Errorf("verdict %+v, want one with %q", v, tt.want)
			}
		})
	}
}

// Of a chain only the leaf must be one that crypto/x509 parses.
func TestUnparsableIntermediateIsServed(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root", Serial: big.NewInt(0x1122334455667788)})
	leaf := root.Issue(t, testca.Spec{DNS: []string{"w.test"}})
	e := entry("w", leaf)
	e.Chain = append(e.Chain, negativeSerial(t, root.DER))
	if got := pick(t, mustNew(t, New, keymanager.Env{}, e), modern("w.test")); got != "w" {
		t.Errorf("chosen %q", got)
	}
}

// negativeSerial changes a certificate so that its serial number is negative,
// which breaks its signature too.
func negativeSerial(t *testing.T, der []byte) []byte {
	t.Helper()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	serial := cert.SerialNumber.Bytes()
	changed := []byte(strings.Replace(string(der), string(serial), string(append([]byte{serial[0] | 0x80}, serial[1:]...)), 1))
	if _, err := x509.ParseCertificate(changed); err == nil {
		t.Fatal("crypto/x509 parses the certificate after all")
	}
	return changed
}

func TestEntrySchemesLimitTheChoice(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca", Key: testca.RSA2048})
	e := entry("token", ca.Issue(t, testca.Spec{Key: testca.RSA2048}))
	e.Schemes = []tls.SignatureScheme{tls.PKCS1WithSHA256}
	c := mustNew(t, New, keymanager.Env{}, e)
	if got := pick(t, c, modern("")); got != "" {
		t.Errorf("TLS 1.3 gets %q", got)
	}
	cred, err := c.Select(tls12(modern(""), keymanager.AuthRSA))
	if err != nil || len(cred.Schemes) != 1 || cred.Schemes[0] != tls.PKCS1WithSHA256 {
		t.Errorf("TLS 1.2 gets %+v, %v", cred, err)
	}
}

func TestConstraintsExcludeChainsAndSchemes(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca", Key: testca.RSA2048})
	rsa := entry("rsa", ca.Issue(t, testca.Spec{Key: testca.RSA2048}))
	ec := entry("ec", ca.Issue(t, testca.Spec{}))
	tests := []struct{ name, certPath, tls, want string }{
		{"none", "", "", "ec"},
		{"curve", "secp256r1", "", "rsa"},
		{"handshake_scheme", "", "ecdsa_secp256r1_sha256 usage HandshakeSignature", "rsa"},
		{"past_date", "EC denyAfter 2020-01-01", "", "rsa"},
		{"future_date", "EC denyAfter 2200-01-01", "", "ec"},
		{"all", "EC, RSA keySize < 4096", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := keymanager.Env{Options: keymanager.Options{
				Constraints: keymanager.Constraints{CertPath: &tt.certPath, TLS: &tt.tls},
			}}
			if got := pick(t, mustNew(t, New, env, ec, rsa), modern("")); got != tt.want {
				t.Errorf("chosen %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDeniedSchemesAreTakenFromTheCredential(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	denied := "rsa_pss_rsae_sha256 usage HandshakeSignature"
	env := keymanager.Env{Options: keymanager.Options{Constraints: keymanager.Constraints{TLS: &denied}}}
	cred, err := mustNew(t, New, env, entry("r", ca.Issue(t, testca.Spec{Key: testca.RSA2048}))).Select(modern(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cred.Schemes {
		if s == tls.PSSWithSHA256 {
			t.Error("a denied scheme is offered to be signed by")
		}
	}
	if len(cred.Schemes) != 5 {
		t.Errorf("schemes %v, want the five others of RSA", cred.Schemes)
	}
}

func TestSelectRefusesHelloWithoutRole(t *testing.T) {
	c := mustNew(t, New, keymanager.Env{}, entry("a", testca.SelfSigned(t, testca.Spec{})))
	_, err := c.Select(&keymanager.Hello{})
	if err == nil || errors.Is(err, keymanager.ErrNoCredential) {
		t.Errorf("Select = %v, want an error that is no answer", err)
	}
}

func TestClockChangesTheChoiceAtTheInstant(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	root := testca.NewRoot(t, testca.Spec{Name: "root", NotBefore: start.AddDate(-1, 0, 0), NotAfter: start.AddDate(9, 0, 0)})
	first := root.Issue(t, testca.Spec{NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Hour)})
	second := root.Issue(t, testca.Spec{NotBefore: start.Add(30 * time.Minute), NotAfter: start.Add(9 * time.Hour)})
	now := start
	env := keymanager.Env{Now: func() time.Time { return now }}
	c := mustNew(t, New, env, entry("first", first), entry("second", second))
	steps := []struct {
		at          time.Duration
		want        string
		from, until time.Duration
	}{
		{0, "first", -time.Hour, 30 * time.Minute},
		{30 * time.Minute, "first", 30 * time.Minute, time.Hour + 1},
		{time.Hour, "first", 30 * time.Minute, time.Hour + 1},
		{time.Hour + 1, "second", time.Hour + 1, 9*time.Hour + 1},
		{0, "first", -time.Hour, 30 * time.Minute}, // a clock that is set back
	}
	for _, s := range steps {
		now = start.Add(s.at)
		cred, err := c.Select(modern(""))
		if err != nil {
			t.Fatal(err)
		}
		if cred.Alias != s.want {
			t.Errorf("at %v: %q, want %q", s.at, cred.Alias, s.want)
		}
		if r := cred.Reuse; !r.From.Equal(start.Add(s.from)) || !r.Until.Equal(start.Add(s.until)) {
			t.Errorf("at %v: reuse from %v until %v", s.at, r.From.Sub(start), r.Until.Sub(start))
		}
	}
}

func TestReuseSpansFitUnixNanoseconds(t *testing.T) {
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	e := entry("a", testca.SelfSigned(t, testca.Spec{NotBefore: time.Date(1951, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: far, Serial: big.NewInt(1)}))
	cred, err := mustNew(t, New, keymanager.Env{}, e).Select(modern(""))
	if err != nil {
		t.Fatal(err)
	}
	r := cred.Reuse
	if !time.Unix(0, r.From.UnixNano()).Equal(r.From) || !time.Unix(0, r.Until.UnixNano()).Equal(r.Until) {
		t.Errorf("reuse %v to %v does not survive UnixNano", r.From, r.Until)
	}
}

// The index is made anew by whoever finds the old one out of date, while others
// choose. Run with -race.
func TestConcurrentSelectWhileTheClockMoves(t *testing.T) {
	start := time.Now()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	var entries []keymanager.Entry
	for i := range 8 {
		spec := testca.Spec{NotBefore: start.Add(-time.Hour), NotAfter: start.Add(time.Duration(i+1) * time.Minute)}
		entries = append(entries, entry(strconv.Itoa(i), root.Issue(t, spec)))
	}
	var clock atomic.Int64
	env := keymanager.Env{Now: func() time.Time { return start.Add(time.Duration(clock.Load()) * time.Second) }}
	c := mustNew(t, New, env, entries...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				before := clock.Add(1)
				cred, err := c.Select(modern(""))
				if err != nil {
					t.Error(err)
					return
				}
				if cred.Leaf.NotAfter.Before(start.Add(time.Duration(before)*time.Second).Truncate(time.Second)) && cred.Alias != "0" {
					t.Errorf("alias %q, expired at %v, is no last resort", cred.Alias, cred.Leaf.NotAfter)
				}
			}
		})
	}
	wg.Wait()
}
