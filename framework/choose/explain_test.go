// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func TestExplainSpeaksAsTheLogDoes(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	entries := []keymanager.Entry{
		{Alias: "broken", Kind: keymanager.KindKey, Reason: "wrong password"},
		entry("old", ca.Issue(t, testca.Spec{DNS: []string{"w.test"}, NotBefore: days(-9), NotAfter: days(-1)})),
		entry("wild", ca.Issue(t, testca.Spec{DNS: []string{"*.test"}})),
	}
	p256 := tls.ECDSAWithP256AndSHA256
	tests := []struct {
		name string
		new  maker
		sni  string
		want []keymanager.Verdict
	}{
		{"checked", New, "w.test", []keymanager.Verdict{
			{Alias: "wild", Class: "ok", Match: "wildcard", Scheme: p256},
			{Alias: "old", Class: "expired", Match: "exact", Scheme: p256, Rule: "validity"},
			{Alias: "broken", Out: true, Rule: "unusable"},
		}},
		{"no_name_asked_for", New, "", []keymanager.Verdict{
			{Alias: "wild", Class: "ok", Scheme: p256},
			{Alias: "old", Class: "expired", Scheme: p256, Rule: "validity"},
			{Alias: "broken", Out: true, Rule: "unusable"},
		}},
		{"names_not_looked_at", NewUnchecked, "w.test", []keymanager.Verdict{
			{Alias: "old", Class: "ok", Scheme: p256},
			{Alias: "wild", Class: "ok", Scheme: p256, Rule: "store_order"},
			{Alias: "broken", Out: true, Rule: "unusable"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mustNew(t, tt.new, keymanager.Env{}, entries...).Explain(modern(tt.sni))
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if (v.Reason == "") != (v.Rule == "") {
					t.Errorf("%q: rule %q, reason %q", v.Alias, v.Rule, v.Reason)
				}
				got[i].Reason = ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := mustNew(t, New, keymanager.Env{}, entries...).Explain(&keymanager.Hello{}); err == nil {
		t.Error("a hello without a role is explained")
	}
}
