// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestStricterRulesOfListener: a host that asks less of its clients is no way to
// what only the listener itself serves, nor to a host that asks more.
func TestStricterRulesOfListener(t *testing.T) {
	cas := newClientCAs(t)
	list := filepath.Join(t.TempDir(), "clients.crl")
	put(t, list, cas.by.get("a.pem").CRL(t, testca.CRL{}))
	s := serveTrusting(t, Config{Listeners: []Listener{{
		Backend: answering(t, "backend"), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list,
		Hosts: []Host{
			{Names: []string{"open.test"}, ClientAuth: ClientAuthNone},
			{Names: []string{"other.test"}, ClientCA: TrustStore{Path: "b.pem"}},
			{Names: []string{"same.test"}},
			{Names: []string{"unlisted.test"}, ClientCA: TrustStore{Path: "a.pem"}},
		},
	}}}, cas.by)
	for _, tt := range []struct {
		sni, host string
		status    int
	}{
		{"open.test", "open.test", 200},
		{"open.test", "z.test", 421},
		{"open.test", "127.0.0.1", 421},
		{"open.test", "same.test", 421},
		{"same.test", "z.test", 200},
		{"same.test", "other.test", 421},
		{"unlisted.test", "unlisted.test", 200},
		{"unlisted.test", "z.test", 421},
		{"z.test", "y.test", 200},
		{"z.test", "open.test", 421},
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-at-%s-h2-%v", tt.host, tt.sni, h2), func(t *testing.T) {
				client := s.httpClient(t, h2)
				cfg := client.Transport.(*http.Transport).TLSClientConfig
				naming(tt.sni)(cfg)
				if tt.sni != "open.test" {
					cfg.Certificates = []tls.Certificate{cas.client}
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.addr(), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = tt.host
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				_, _ = io.Copy(io.Discard, resp.Body)
				if resp.StatusCode != tt.status {
					t.Errorf("%d, want %d", resp.StatusCode, tt.status)
				}
			})
		}
	}
}

// TestOddHostIsNoWayRound: spellings of a name that a backend, or the way there,
// may take for that of the host.
func TestOddHostIsNoWayRound(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: answering(t, "own"), Hosts: []Host{{Names: []string{"a.test"}}}}}})
	_, port, err := net.SplitHostPort(s.addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, host, want string }{
		{"plain", "z.test", "200"},
		{"port-of-nothing", "a.test:", "421"},
		{"two-ports", "a.test:1:2", "421"},
		{"brackets", "[a.test]:1", "421"},
		{"two-dots", "A.test..", "421"},
		{"full-width", "ａ.test", "400"},
		{"ideographic-dot", "a。test", "400"},
		{"path", "a.test/b", "400"},
		{"user", "x@a.test", "400"},
		{"escaped", "%61.test", "400"},
	} {
		for _, version := range []string{"--http1.1", "--http2"} {
			t.Run(tt.name+version, func(t *testing.T) {
				got := tool(t, "curl", "-sS", version, "-k", "-o", "/dev/null", "-w", "%{http_code}",
					"--resolve", "z.test:"+port+":127.0.0.1", "-H", "Host: "+tt.host, "https://z.test:"+port+"/")
				// A user in front net/http itself refuses in HTTP/2.
				if got != tt.want && !strings.Contains(got, "PROTOCOL_ERROR") {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		}
	}
}
