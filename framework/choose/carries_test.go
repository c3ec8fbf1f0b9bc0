// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose_test

import (
	"crypto/x509"
	"net"
	"testing"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/internal/testca"
)

func TestCarries(t *testing.T) {
	leaf := func(s testca.Spec) *x509.Certificate { return testca.SelfSigned(t, s).Cert }
	both := leaf(testca.Spec{Name: "cn.test", DNS: []string{"a.test", "*.b.test"}, IPs: []net.IP{net.IPv4(192, 0, 2, 1)}})
	for _, tt := range []struct {
		name string
		leaf *x509.Certificate
		sni  string
		want choose.Match
	}{
		{"exact", both, "a.test", choose.ExactMatch},
		{"case-and-dot", both, "A.Test.", choose.ExactMatch},
		{"wildcard", both, "x.b.test", choose.WildcardMatch},
		{"two-labels", both, "x.y.b.test", choose.NoMatch},
		{"address", both, "192.0.2.1", choose.ExactMatch},
		{"common-name-beside-san", both, "cn.test", choose.NoMatch},
		{"common-name-alone", leaf(testca.Spec{Name: "cn.test"}), "cn.test", choose.ExactMatch},
		{"no-name", both, "", choose.NoMatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := choose.Carries(tt.leaf, tt.sni); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
