// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"net"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

func TestNameMatching(t *testing.T) {
	dns := func(names ...string) testca.Spec { return testca.Spec{Name: "cn.test", DNS: names} }
	tests := []struct {
		name string
		spec testca.Spec
		sni  string
		want Match
	}{
		{"exact", dns("a.w.test"), "a.w.test", ExactMatch},
		{"case_of_certificate", dns("A.W.Test"), "a.w.test", ExactMatch},
		{"case_of_hello", dns("a.w.test"), "A.w.TEST", ExactMatch},
		{"trailing_dot_of_certificate", dns("a.w.test."), "a.w.test", ExactMatch},
		{"trailing_dot_of_hello", dns("a.w.test"), "a.w.test.", ExactMatch},
		{"second_name", dns("x.test", "a.w.test"), "a.w.test", ExactMatch},
		{"single_label", dns("localhost"), "localhost", ExactMatch},
		{"underscore", dns("_a_b.w.test"), "_a_b.w.test", ExactMatch},
		{"a_label", dns("xn--bcher-kva.test"), "xn--bcher-kva.test", ExactMatch},
		{"other", dns("a.w.test"), "b.w.test", NoMatch},
		{"suffix_is_none", dns("w.test"), "a.w.test", NoMatch},

		{"wildcard", dns("*.w.test"), "a.w.test", WildcardMatch},
		{"wildcard_case", dns("*.W.test"), "A.w.test", WildcardMatch},
		{"wildcard_one_label_only", dns("*.w.test"), "a.b.w.test", NoMatch},
		{"wildcard_is_not_the_parent", dns("*.w.test"), "w.test", NoMatch},
		{"wildcard_of_top_level", dns("*.test"), "w.test", WildcardMatch},
		{"exact_of_both", dns("*.w.test", "a.w.test"), "a.w.test", ExactMatch},
		{"partial_wildcard", dns("a*.w.test"), "ab.w.test", NoMatch},
		{"partial_wildcard_literally", dns("a*.w.test"), "a*.w.test", NoMatch},
		{"wildcard_in_the_middle", dns("a.*.test"), "a.w.test", NoMatch},
		{"bare_wildcard", dns("*"), "w", NoMatch},
		{"asked_for_a_wildcard", dns("*.w.test"), "*.w.test", NoMatch},
		{"empty_label", dns("*.w.test"), ".w.test", NoMatch},
		{"control_byte", dns("*.w.test"), "a\x00.w.test", NoMatch},
		{"too_long", dns("*.w.test"), strings.Repeat("a", 300) + ".w.test", NoMatch},

		{"common_name", testca.Spec{Name: "CN.test"}, "cn.test", ExactMatch},
		{"common_name_beside_address", testca.Spec{Name: "cn.test", IPs: []net.IP{net.IPv4(192, 0, 2, 1)}}, "cn.test", ExactMatch},
		{"common_name_wildcard", testca.Spec{Name: "*.cn.test"}, "a.cn.test", WildcardMatch},
		{"common_name_beside_dns_name", dns("a.w.test"), "cn.test", NoMatch},
		{"common_name_that_is_no_host", testca.Spec{Name: "My Server"}, "my server", NoMatch},

		{"address", testca.Spec{IPs: []net.IP{net.IPv4(192, 0, 2, 1)}}, "192.0.2.1", ExactMatch},
		{"address_v6", testca.Spec{IPs: []net.IP{net.ParseIP("2001:db8::1")}}, "[2001:DB8:0::1]", ExactMatch},
		{"address_as_dns_name", dns("192.0.2.1"), "192.0.2.1", NoMatch},
		{"address_under_a_wildcard", dns("*.0.2.1"), "192.0.2.1", NoMatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names := namesOf(testca.SelfSigned(t, tt.spec).Cert)
			if got := names.match(parseServerName(tt.sni)); got != tt.want {
				t.Errorf("match of %q is %v, want %v", tt.sni, got, tt.want)
			}
		})
	}
}

func TestNameThatNoCertificateCanCarryIsStillAskedFor(t *testing.T) {
	if n := parseServerName("a b"); !n.asked || n.exact != "" || n.parent != "" {
		t.Errorf("server name %+v", n)
	}
	if parseServerName("").asked {
		t.Error("no name is asked for")
	}
}

func TestFoldAgreesWithEqualFold(t *testing.T) {
	words := []string{"", "a", "A", "alias", "ALIAS", "ſ", "s", "S", "K", "k", "K", "σ", "ς", "Σ", "ß", "İ", "i", "\xff", "\xfe"}
	for _, a := range words {
		for _, b := range words {
			if (fold(a) == fold(b)) != strings.EqualFold(a, b) {
				t.Errorf("fold of %q and %q does not agree with EqualFold", a, b)
			}
		}
	}
}
