// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// question is one hello and the alias that answers it, for a tier that looks at
// certificates and for one that doesn't. Empty is no credential.
type question struct {
	name               string
	hello              *keymanager.Hello
	checked, unchecked string
}

// scenario is some keystores and the questions put to them.
type scenario struct {
	name      string
	options   keymanager.Options
	builders  [][]testca.StoreEntry
	questions []question
}

func (s suite) choice(t *testing.T) {
	for _, sc := range scenarios(newCA(t)) {
		t.Run(sc.name, func(t *testing.T) {
			var sources []keymanager.Source
			for _, entries := range sc.builders {
				sources = append(sources, newStore(t, entries...).source())
			}
			km := s.open(t, sc.options, sources...)
			for _, q := range sc.questions {
				t.Run(q.name, func(t *testing.T) {
					want := q.checked
					if s.Caps.Unchecked {
						want = q.unchecked
					}
					if got := chosen(t, km, q.hello); got != want {
						t.Errorf("chosen %q, want %q", got, want)
					}
				})
			}
		})
	}
}

// chosen returns the alias of the answer, empty for ErrNoCredential.
func chosen(t *testing.T, km keymanager.KeyManager, h *keymanager.Hello) string {
	t.Helper()
	cred, err := km.Select(t.Context(), h)
	if errors.Is(err, keymanager.ErrNoCredential) {
		return ""
	}
	if err != nil {
		t.Fatalf("select: %v", err)
	}
	return cred.Alias
}

func scenarios(ca *ca) []scenario {
	both := keymanager.AuthRSA | keymanager.AuthECDSA
	ec := ca.entry("ec", named("w.test"))
	rsa := ca.entry("rsa", testca.Spec{DNS: []string{"w.test"}, Key: testca.RSA2048})
	old, fresh := ca.entry("old", expired("w.test")), ca.entry("fresh", named("w.test"))
	server := ca.entry("server", named("w.test"))
	client := ca.entry("client", testca.Spec{DNS: []string{"w.test"}, EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	one := func(entries ...testca.StoreEntry) [][]testca.StoreEntry { return [][]testca.StoreEntry{entries} }
	return []scenario{
		{"names", keymanager.Options{}, one(
			ca.entry("a", named("a.test")), ca.entry("wild", named("*.w.test")), ca.entry("exact", named("x.w.test")), ca.entry("cn", testca.Spec{Name: "cn.test"}),
		), []question{
			{"exact", hello("a.test"), "a", "a"},
			{"exact_before_wildcard", hello("x.w.test"), "exact", "a"},
			{"wildcard", hello("y.w.test"), "wild", "a"},
			{"common_name", hello("cn.test"), "cn", "a"},
			{"unknown", hello("no.test"), "a", "a"},
			{"none", hello(""), "a", "a"},
			{"alias", demand("WILD", hello("a.test")), "wild", "wild"},
			{"unknown_alias", demand("nope", hello("a.test")), "", ""},
		}},
		{"validity", keymanager.Options{}, one(old, fresh), []question{
			{"by_name", hello("w.test"), "fresh", "old"},
			{"without_name", hello(""), "fresh", "old"},
			{"demanded_all_the_same", demand("old", hello("w.test")), "old", "old"},
		}},
		{"only_expired", keymanager.Options{}, one(old), []question{{"served", hello("w.test"), "old", "old"}}},
		{"usage", keymanager.Options{}, one(client, server), []question{
			{"server", hello("w.test"), "server", "client"},
			{"client", certificateRequest(), "client", "client"},
			{"client_by_issuer", certificateRequest(ca.ec.Cert.RawSubject), "client", "client"},
			{"client_of_another_issuer", certificateRequest(ca.rsa.Cert.RawSubject), "", ""},
		}},
		{"key_types", keymanager.Options{}, one(rsa, ec), []question{
			{"peer_order", hello("w.test"), "ec", "ec"},
			{"rsa_only", offering(hello("w.test"), tls.PSSWithSHA256, tls.PKCS1WithSHA256), "rsa", "rsa"},
			{"ecdsa_only", offering(hello("w.test"), tls.ECDSAWithP256AndSHA256), "ec", "ec"},
			{"none_in_common", offering(hello("w.test"), tls.Ed25519), "", ""},
			{"tls12_rsa_suites", tls12(hello("w.test"), keymanager.AuthRSA), "rsa", "rsa"},
			{"tls12_all_suites", tls12(hello("w.test"), both), "ec", "ec"},
			{"tls12_sha1_only", tls12(offering(hello("w.test"), tls.PKCS1WithSHA1, tls.ECDSAWithSHA1), both), "", ""},
		}},
		{"builders", keymanager.Options{}, [][]testca.StoreEntry{{ca.entry("same", named("a.test"))}, {ca.entry("second", named("b.test")), ca.entry("same", named("c.test"))}}, []question{
			{"first_without_name", hello(""), "same", "same"},
			{"name_in_the_second", hello("b.test"), "second", "same"},
		}},
		{"default_alias", keymanager.Options{DefaultAlias: "b"}, one(ca.entry("a", named("a.test")), ca.entry("b", named("b.test"))), []question{
			{"without_name", hello(""), "b", "a"},
			{"unknown_name", hello("no.test"), "b", "a"},
			{"known_name", hello("a.test"), "a", "a"},
		}},
	}
}

// credential checks that alias, builder, chain and key of an answer are of one
// entry.
func (s suite) credential(t *testing.T) {
	ca := newCA(t)
	inter := ca.ec.Issue(t, testca.Spec{Name: "intermediate", IsCA: true})
	leaf := inter.Issue(t, named("w.test"))
	km := s.open(t, keymanager.Options{},
		newStore(t, ca.entry("1.0.first", testca.Spec{Key: testca.Ed25519})).source(),
		newStore(t, testca.StoreEntry{Alias: "1.0.www.example.test", Cert: leaf}).source())

	cred, err := km.Select(t.Context(), hello("w.test"))
	if err != nil {
		t.Fatal(err)
	}
	if cred.Builder != 1 || cred.Alias != "1.0.www.example.test" || cred.Generation == 0 {
		t.Errorf("builder %d, alias %q, generation %d", cred.Builder, cred.Alias, cred.Generation)
	}
	if len(cred.Chain) != 2 || !bytes.Equal(cred.Chain[0], leaf.DER) || !bytes.Equal(cred.Chain[1], inter.DER) {
		t.Errorf("the chain of %d certificates is not leaf and intermediate", len(cred.Chain))
	}
	if cred.Leaf == nil || !bytes.Equal(cred.Leaf.Raw, leaf.DER) {
		t.Error("Leaf is not the first certificate of the chain")
	}
	if !samePublicKey(cred.Key.Public(), leaf.Cert.PublicKey) {
		t.Error("the key is not the leaf's")
	}
}

// reuse checks that an answer to be kept says for how long and for whom, and
// that one for a single handshake says nothing.
func (s suite) reuse(t *testing.T) {
	ca := newCA(t)
	km := s.open(t, keymanager.Options{}, newStore(t, ca.entry("a", named("a.test"))).source())
	cred, err := km.Select(t.Context(), hello("a.test"))
	if err != nil {
		t.Fatal(err)
	}
	r, now := cred.Reuse, time.Now()
	if s.Caps.NoReuse {
		if r != (keymanager.Reuse{}) {
			t.Errorf("reuse %+v, want none", r)
		}
		return
	}
	if now.Before(r.From) || !now.Before(r.Until) {
		t.Errorf("the answer holds from %v until %v", r.From, r.Until)
	}
	if r.Vary&keymanager.FieldSchemes == 0 || r.Vary&keymanager.FieldAlias == 0 || r.Vary&keymanager.FieldRole == 0 {
		t.Errorf("the answer varies by %b, which lacks role, alias or schemes", r.Vary)
	}
	if r.Vary&keymanager.FieldServerName == 0 && !s.Caps.Unchecked {
		t.Error("the answer does not vary by server name")
	}
}
