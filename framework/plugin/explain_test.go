// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// explainingManager has two verdicts for every hello but those for names that
// tell it to go wrong.
type explainingManager struct{ *testManager }

func (explainingManager) Explain(_ context.Context, h *keymanager.Hello) ([]keymanager.Verdict, error) {
	switch h.ServerName {
	case "panic.example":
		panic("tripped at explain")
	case "mistaken.example":
		return nil, keymanager.ErrNoCredential
	case "nothing.example":
		return verdicts(h)[1:], nil
	}
	return verdicts(h), nil
}

func verdicts(h *keymanager.Hello) []keymanager.Verdict {
	return []keymanager.Verdict{
		{Builder: 1, Alias: "pair", Class: "ok", Match: "exact", Scheme: tls.ECDSAWithP256AndSHA256},
		{Alias: "other", Out: true, Class: "expired", Match: "none", Rule: "scheme", Reason: fmt.Sprintf("not for %q", h.ServerName)},
	}
}

func TestExplainArrivesWhole(t *testing.T) {
	service, _ := openAs(t, explainingManager{})
	defer service.close()
	local := &Local{service: service, done: make(chan struct{})}
	for name, m := range map[string]keymanager.Explainer{"local": local, "host": startHost(t, "explain")} {
		for _, server := range []string{"a.example", "nothing.example"} {
			t.Run(name+"/"+server, func(t *testing.T) {
				h := serverHello(server)
				got, err := m.Explain(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				want := verdicts(h)
				if server == "nothing.example" {
					want = want[1:]
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if _, ok := keymanager.Winner(got); ok == (server == "nothing.example") {
					t.Errorf("there is a winner: %v", ok)
				}
			})
		}
	}
}

func TestExplainFails(t *testing.T) {
	h := startHost(t, "explain")
	tests := []struct{ name, server, want string }{
		{"panic", "panic.example", "explain: the key manager panicked: tripped at explain"},
		{"no-credential", "mistaken.example", "in place of verdicts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Explain(t.Context(), serverHello(tt.server))
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrUnsupported) {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := h.Explain(t.Context(), &keymanager.Hello{}); err == nil || !strings.Contains(err.Error(), "neither server nor client") {
		t.Errorf("a hello without a role: %v", err)
	}
}

func TestPluginThatDoesNotExplain(t *testing.T) {
	h := startHost(t, "")
	if _, err := h.Explain(t.Context(), serverHello("a.example")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("explain: %v", err)
	}
	mustSelect(t, h.Host)
}

// A plugin that was built before explain was in the contract selects instead.
func TestPluginThatDoesNotKnowExplain(t *testing.T) {
	tests := []struct {
		name string
		resp *pb.SelectResponse
		err  error
	}{
		{"credential", &pb.SelectResponse{Chain: [][]byte{{1}}}, nil},
		{"no-credential", nil, keymanager.ErrNoCredential},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := verdictsFromProto(tt.resp, tt.err); !errors.Is(err, ErrUnsupported) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestExplainIsDescribed(t *testing.T) {
	api, _ := configured(t, testSettings{}, nil)
	d, err := api.Describe(t.Context(), &pb.DescribeRequest{ContractVersions: []uint32{ContractVersion}})
	if err != nil || d.GetExplains() {
		t.Errorf("described as %v (%v)", d, err)
	}
}

func TestHostileVerdictsAreFitForATerminal(t *testing.T) {
	got := verdictFromProto(&pb.Candidate{Class: "ok\x1b[2J", Match: "\n", Rule: strings.Repeat("x", 1<<20), Reason: "a\rb"})
	for _, s := range []string{got.Class, got.Match, got.Rule, got.Reason} {
		if strings.ContainsAny(s, "\x1b\n\r") || len(s) > maxErrorText {
			t.Errorf("%.40q of %d bytes", s, len(s))
		}
	}
}
