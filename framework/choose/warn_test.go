// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// told returns "message alias: reason" of each warning.
func told(logs *observer.ObservedLogs) (out []string) {
	for _, l := range lines(logs) {
		if l.Level == zapcore.WarnLevel {
			out = append(out, fmt.Sprintf("%s %v: %v", l.Message, l.Alias, l.Reason))
		}
	}
	return out
}

func TestWhatExpiresIsToldOf(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := func(name string, ends time.Duration) testca.Spec {
		return testca.Spec{Name: name, NotBefore: start.AddDate(-1, 0, 0), NotAfter: start.Add(ends)}
	}
	root := testca.NewRoot(t, spec("root", day)) // nobody needs it to be valid here
	ca := spec("intermediate", 20*day)
	ca.IsCA = true
	inter := root.Issue(t, ca)
	e := []keymanager.Entry{
		entry("later", root.Issue(t, spec("", 22*day))),
		entry("soon", root.Issue(t, spec("", 10*day+time.Hour))),
		entry("over", root.Issue(t, spec("", -day))),
		withRoot(entry("above", inter.Issue(t, spec("", 90*day))), root),
	}
	soon := "certificate expires soon: expires at 2030-01-11T01:00:00Z, in 10 days; renew it"
	over := "certificate expires over: expired at 2029-12-31T00:00:00Z; renew it"
	above := `certificate expires above: certificate "CN=intermediate" of its chain expires at 2030-01-21T00:00:00Z, in 20 days; renew it`
	for _, tt := range []struct {
		name    string
		warning time.Duration
		want    []string
	}{
		{"default_of_21_days", 0, []string{soon, over, above}},
		{"one_week", 7 * day, []string{over}},
	} {
		for kind, mk := range map[string]maker{"checked": New, "unchecked": NewUnchecked} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				core, logs := observer.New(zapcore.InfoLevel)
				env := keymanager.Env{Log: zap.New(core), Now: func() time.Time { return start }}
				env.Options.ExpiryWarning = tt.warning
				mustNew(t, mk, env, e...)
				if diff := cmp.Diff(tt.want, told(logs)); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A day is what passes between two hellos at least 24 hours apart, on the
// injected clock; last resorts are told of again too.
func TestWarningsAreRepeatedDaily(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	now := start
	old := testca.SelfSigned(t, testca.Spec{NotBefore: start.AddDate(-1, 0, 0), NotAfter: start.Add(-day)})
	core, logs := observer.New(zapcore.InfoLevel)
	c := mustNew(t, New, keymanager.Env{Log: zap.New(core), Now: func() time.Time { return now }}, entry("old", old))
	for _, step := range []struct {
		at       time.Duration
		warnings int // of the certificate, and of its being served
	}{
		{0, 2}, {time.Minute, 0}, {day - 1, 0}, {day, 2}, {day + time.Hour, 0}, {12 * time.Hour, 0}, {9 * day, 2}, {9*day + 1, 0},
	} {
		now = start.Add(step.at)
		for range 3 {
			cred, err := c.Select(modern(""))
			if err != nil {
				t.Fatal(err)
			}
			if !cred.Reuse.Until.After(now) || cred.Reuse.Until.Sub(now) > 2*day {
				t.Errorf("after %v the answer holds until %v: whoever reuses it keeps the warnings away", step.at, cred.Reuse.Until)
			}
		}
		if got := told(logs); len(got) != step.warnings {
			t.Errorf("after %v: warnings %q, want %d", step.at, got, step.warnings)
		}
	}
}

func TestNewViewWarnsAnew(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	env := keymanager.Env{Log: zap.New(core)}
	soon := entry("soon", testca.SelfSigned(t, testca.Spec{NotAfter: days(3)}))
	for generation := range uint64(2) {
		if _, err := New(generation+1, []keymanager.Entry{soon}, env); err != nil {
			t.Fatal(err)
		}
	}
	if got := told(logs); len(got) != 2 || !strings.HasPrefix(got[1], msgExpires+" soon: ") {
		t.Errorf("warnings %q", got)
	}
}

func TestChainsWithoutAnIntermediateAreToldOf(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	inter := root.Issue(t, testca.Spec{Name: "intermediate", IsCA: true})
	other := root.Issue(t, testca.Spec{Name: "other", IsCA: true})
	leaf := inter.Issue(t, testca.Spec{Name: "leaf"})
	with := func(alias string, chain ...[]byte) keymanager.Entry {
		e := entry(alias, leaf)
		e.Chain = chain
		return e
	}
	public := testca.Cert{Cert: withAIA(t, inter), Key: inter.Key}
	public.DER = public.Cert.Raw
	tests := []struct {
		name    string
		entries []keymanager.Entry
		want    string // of the first entry
	}{
		{"complete", []keymanager.Entry{with("a", leaf.DER, inter.DER)}, ""},
		{"complete_with_root", []keymanager.Entry{with("a", leaf.DER, inter.DER, root.DER)}, ""},
		{"issued_by_a_root", []keymanager.Entry{entry("a", root.Issue(t, testca.Spec{}))}, ""},
		{"unknown", []keymanager.Entry{with("a", leaf.DER)}, ""},
		{"self_signed", []keymanager.Entry{entry("a", testca.SelfSigned(t, testca.Spec{Name: "s"}))}, ""},
		{"stands_in_another_entry", []keymanager.Entry{with("a", leaf.DER), entry("b", inter.Issue(t, testca.Spec{}))},
			`ends before the intermediate certificate "CN=intermediate", which stands in another entry's; add it`},
		{"of_a_public_ca", []keymanager.Entry{entry("a", &public)},
			`there is no intermediate certificate; add that of "CN=intermediate", to be had at http://ca.test/i.cer`},
		{"another_one_follows", []keymanager.Entry{with("a", leaf.DER, other.DER)},
			`certificate "CN=leaf" is followed by "CN=other", and its issuer is "CN=intermediate"; put the chain in order, the leaf first`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.InfoLevel)
			mustNew(t, New, keymanager.Env{Log: zap.New(core)}, tt.entries...)
			want := []string{}
			if tt.want != "" {
				want = append(want, msgIncomplete+" a: "+tt.want)
			}
			got := slices.DeleteFunc(told(logs), func(s string) bool { return !strings.HasPrefix(s, msgIncomplete) })
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// withAIA issues a certificate over the issuer's key that says where the
// issuer's certificate is, as public CAs do.
func withAIA(t *testing.T, issuer *testca.Cert) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "public"}, NotBefore: days(-1), NotAfter: days(90),
		IssuingCertificateURL: []string{"http://ca.test/i.cer"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Cert, issuer.Key.Public(), issuer.Key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestEntriesOutByConstraintsAreToldOfDaily(t *testing.T) {
	now := time.Now()
	root := testca.NewRoot(t, testca.Spec{Name: "ca", Key: testca.RSA2048})
	rules := "RSA keySize < 4096"
	core, logs := observer.New(zapcore.InfoLevel)
	env := keymanager.Env{Log: zap.New(core), Now: func() time.Time { return now }}
	env.Options.Constraints.CertPath = &rules
	c := mustNew(t, New, env, entry("out", root.Issue(t, testca.Spec{Key: testca.RSA2048})), entry("ec", root.Issue(t, testca.Spec{})))
	now = now.Add(day)
	pick(t, c, modern(""))
	got := told(logs)
	if len(got) != 2 || got[0] != got[1] || !strings.HasPrefix(got[0], logging.MsgNotUsable+" out: never served: ") {
		t.Errorf("warnings %q", got)
	}
}
