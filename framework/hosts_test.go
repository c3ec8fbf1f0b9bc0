// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// saying is a TCP backend that says its name and ends, and its URL.
func saying(t testing.TB, name string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name)
			c.Close()
		}
	}()
	return "tcp://" + ln.Addr().String()
}

// answering is an HTTP backend that says its name.
func answering(t testing.TB, name string) string {
	t.Helper()
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, name) }))
	t.Cleanup(b.Close)
	return b.URL
}

// naming returns a change of a client's configuration: any certificate will do.
func naming(name string) func(*tls.Config) {
	return func(c *tls.Config) { c.ServerName, c.InsecureSkipVerify = name, true }
}

func TestHostIsChosenByServerName(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: saying(t, "own"), Alias: "listener", Hosts: []Host{
		{Names: []string{"*.b.test"}, Backend: saying(t, "wildcard")},
		{Names: []string{"A.test.", "x.b.test", "192.0.2.1"}, Backend: saying(t, "exact"), Alias: "host"},
	}}}})
	for _, tt := range []struct{ name, sni, want, alias string }{
		{"exact", "a.test", "exact", "host"},
		{"case", "A.TEST", "exact", "host"},
		{"exact-before-wildcard", "x.b.test", "exact", "host"},
		{"wildcard", "y.b.test", "wildcard", "listener"},
		{"wildcard-case", "Y.B.Test", "wildcard", "listener"},
		{"parent-of-wildcard", "b.test", "own", "listener"},
		{"two-labels", "x.y.b.test", "own", "listener"},
		{"unknown", "c.test", "own", "listener"},
		{"none", "", "own", "listener"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := s.dial(t, naming(tt.sni))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, err := io.ReadAll(c)
			if string(got) != tt.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
			if h := s.fake.hello.Load(); h.Alias != tt.alias {
				t.Errorf("alias %q was demanded, want %q", h.Alias, tt.alias)
			}
		})
	}
	// Go's client sends no address as its server name; others do.
	for sni, want := range map[string]int{"192.0.2.1": 2, "192.0.2.2": 0, ".b.test": 0, "b.test.": 0, "y.b.test.": 1} {
		if got := s.now.Load().listeners[0].route.Load().names.find(sni); got != want {
			t.Errorf("%q is of host %d, want %d", sni, got, want)
		}
	}
}

func TestHostInherits(t *testing.T) {
	ca := func(path string) TrustStore { return TrustStore{Path: path} }
	own := Listener{
		Listen: "127.0.0.1:1", Backend: "https://own", BackendTLS: BackendTLS{Name: "own", CA: ca("own-backend")},
		ALPN: []string{"http/1.1"}, MinVersion: tls.VersionTLS13, UnknownSNI: UnknownSNIReject, Alias: "own",
		ClientAuth: ClientAuthRequire, ClientCA: ca("own-clients"),
	}
	for _, tt := range []struct {
		name   string
		host   Host
		change func(*Listener) // own's, to what is wanted
	}{
		{"all", Host{}, func(*Listener) {}},
		{"backend", Host{Backend: "https://h"}, func(l *Listener) { l.Backend, l.BackendTLS = "https://h", BackendTLS{} }},
		{"backend-tls", Host{BackendTLS: BackendTLS{Name: "h"}}, func(l *Listener) { l.BackendTLS = BackendTLS{Name: "h"} }},
		{"other-kind", Host{Backend: "tcp://h:1"}, func(l *Listener) { l.Backend, l.BackendTLS, l.ALPN = "tcp://h:1", BackendTLS{}, nil }},
		{"alias", Host{Alias: "h"}, func(l *Listener) { l.Alias = "h" }},
		{"client-auth", Host{ClientAuth: ClientAuthNone}, func(l *Listener) { l.ClientAuth = ClientAuthNone }},
		{"client-ca", Host{ClientCA: ca("h")}, func(l *Listener) { l.ClientCA = ca("h") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, want := own, own
			l.Hosts = []Host{tt.host}
			tt.change(&want)
			if diff := cmp.Diff([]Listener{own, want}, l.sites()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHostsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		l    Listener
		want string
	}{
		{"no-names", Listener{Hosts: []Host{{}}}, `listener "127.0.0.1:8443": hosts[0] has no names`},
		{"no-name", Listener{Hosts: []Host{{Names: []string{"w*.test"}}}}, `hosts[0]: name "w*.test" is no host name: a wildcard stands for`},
		{"twice", Listener{Hosts: []Host{{Names: []string{"bücher.test"}}, {Names: []string{"a.test", "XN--Bcher-kva.test."}}}}, `hosts[1]: name "XN--Bcher-kva.test." is there already, as "bücher.test" in hosts[0]`},
		{"twice-in-one", Listener{Hosts: []Host{{Names: []string{"*.a.test", "*.A.test"}}}}, `hosts[0]: name "*.A.test" is there already, as "*.a.test" in hosts[0]`},
		{"no-trust-store", Listener{Hosts: []Host{{Names: []string{"a.test"}, ClientAuth: ClientAuthRequire}}}, `host "a.test": client_auth is "require" without a trust store`},
		{"nobody-asked", Listener{Hosts: []Host{{Names: []string{"a.test", "b.test"}, ClientCA: TrustStore{Path: "x"}}}}, `host "a.test, b.test": client_ca "x" is given and nobody is asked`},
		{"client-auth", Listener{Hosts: []Host{{Names: []string{"a.test"}, ClientAuth: "maybe"}}}, `host "a.test": client_auth "maybe" is not one of`},
		{"unknown-sni", Listener{UnknownSNI: "refuse"}, `unknown_sni "refuse" is neither default nor reject`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewServer(t.Context(), Config{Listeners: []Listener{tt.l}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestHostOfWrongBackendIsNamed: what only shows when a host is set up.
func TestHostOfWrongBackendIsNamed(t *testing.T) {
	f, _ := fakeOf(t)
	k, _ := f.keys(t)
	l := Listener{Listen: "127.0.0.1:0", Backend: defaultBackend, Hosts: []Host{{Names: []string{"a.test"}, Backend: "ftp://x"}}}
	_, err := newServer(t.Context(), Config{Listeners: []Listener{l}}, k)
	if err == nil || !strings.Contains(err.Error(), `listener "127.0.0.1:0": host "a.test": backend "ftp://x"`) {
		t.Errorf("error = %v", err)
	}
}

func TestHostsDemandAliasesAndTrustStores(t *testing.T) {
	cfg := Config{Listeners: []Listener{{Alias: "own", Hosts: []Host{
		{Names: []string{"a.test"}, Alias: "host", ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "/ca"}},
		{Names: []string{"b.test"}},
	}}}}.withListeners()
	if got := fmt.Sprint(cfg.Options.Aliases); got != "[own host]" {
		t.Errorf("aliases %s", got)
	}
	if got := fmt.Sprint(cfg.trustFiles()); got != "[/ca]" {
		t.Errorf("files %s", got)
	}
}

// TestRequestForOtherHostIsMisdirected by the connection's server name and the
// request's Host, over HTTP/1.1 and HTTP/2.
func TestRequestForOtherHostIsMisdirected(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: answering(t, "own"), Hosts: []Host{
		{Names: []string{"a.test", "a2.test"}, Backend: answering(t, "a")},
		{Names: []string{"*.b.test"}, Backend: answering(t, "b")},
		{Names: []string{"c.b.test", "192.0.2.1"}}, // the listener's backend
	}}}})
	for _, tt := range []struct {
		name, sni, host, want string
		status                int
	}{
		{"same", "a.test", "a.test", "a", 200},
		{"same-with-port", "a.test", "A.Test.:8443", "a", 200},
		{"same-host-other-name", "a.test", "a2.test", "a", 200},
		{"unknown-host", "a.test", "z.test", "a", 200},
		{"other", "a.test", "x.b.test", "", 421},
		{"other-by-exact-name", "x.b.test", "c.b.test", "", 421},
		{"wildcard", "x.b.test", "y.b.test", "b", 200},
		{"of-a-host-without-name", "", "a.test", "", 421},
		{"of-a-host-by-unknown-name", "z.test", "a.test", "", 421},
		{"of-a-host-by-address", "", "192.0.2.1:443", "", 421},
		{"of-none", "z.test", "127.0.0.1", "own", 200},
		{"inherits", "c.b.test", "c.b.test", "own", 200},
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-h2-%v", tt.name, h2), func(t *testing.T) {
				client := s.httpClient(t, h2)
				naming(tt.sni)(client.Transport.(*http.Transport).TLSClientConfig)
				if tt.sni == "" { // Go's client would send the URL's host otherwise
					client.Transport.(*http.Transport).TLSClientConfig.ServerName = "127.0.0.1"
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
				body, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != tt.status || tt.status == 200 && string(body) != tt.want {
					t.Errorf("%d, %q, want %d, %q", resp.StatusCode, body, tt.status, tt.want)
				}
			})
		}
	}
}

// TestHostsOfBothKinds: HTTP beside bytes at one listener, each with its ALPN.
func TestHostsOfBothKinds(t *testing.T) {
	for _, tt := range []struct {
		name     string
		listener Listener
		http     string // whose names they are
		bytes    string
	}{
		{"http-at-bytes", Listener{Backend: saying(t, "bytes"), Hosts: []Host{{Names: []string{"h.test"}, Backend: answering(t, "http")}}}, "h.test", "a.test"},
		{"bytes-at-http", Listener{Backend: answering(t, "http"), ALPN: []string{"h2", "http/1.1"}, Hosts: []Host{{Names: []string{"h.test"}, Backend: saying(t, "bytes")}}}, "a.test", "h.test"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, Config{Listeners: []Listener{tt.listener}})
			raw, err := s.dial(t, func(c *tls.Config) { naming(tt.bytes)(c); c.NextProtos = []string{"h2", "http/1.1"} })
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			got, _ := io.ReadAll(raw)
			if string(got) != "bytes" || raw.ConnectionState().NegotiatedProtocol != "" {
				t.Errorf("%q, ALPN %q", got, raw.ConnectionState().NegotiatedProtocol)
			}
			web, err := s.dial(t, func(c *tls.Config) { naming(tt.http)(c); c.NextProtos = []string{"http/1.1"} })
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			fmt.Fprintf(web, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", tt.http)
			resp, err := http.ReadResponse(bufio.NewReader(web), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if string(body) != "http" || web.ConnectionState().NegotiatedProtocol != "http/1.1" {
				t.Errorf("%q, ALPN %q", body, web.ConnectionState().NegotiatedProtocol)
			}
		})
	}
}

// TestHostsShareBackend that they don't state, and its connections with it.
func TestHostsShareBackend(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: answering(t, "own"), Hosts: []Host{
		{Names: []string{"a.test"}}, {Names: []string{"b.test"}, Backend: answering(t, "b")},
	}}}})
	sites := s.now.Load().listeners[0].route.Load().sites
	if sites[0].handler != sites[1].handler || sites[0].handler == sites[2].handler {
		t.Error("the listener's backend is to be one, and another's another")
	}
}

// TestReloadOfHostsIsAllOrNothing: one host's trust store is gone and another's
// is new.
func TestReloadOfHostsIsAllOrNothing(t *testing.T) {
	cas := newClientCAs(t)
	s := serveTrusting(t, Config{Listeners: []Listener{{Backend: echo(t), Hosts: []Host{
		{Names: []string{"a.test"}, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}},
		{Names: []string{"b.test"}, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "b.pem"}},
	}}}}, cas.by)
	visitA := func() string {
		cfg := clientOf(s.root, "a.test")
		cfg.Certificates = []tls.Certificate{cas.client}
		got, err := visit(t, s.addr(), cfg)
		if err != nil {
			return "refused"
		}
		return got
	}
	if got := visitA(); got != "full" {
		t.Fatal(got)
	}
	b := cas.by.get("b.pem")
	cas.by.set("a.pem", b)
	cas.by.set("b.pem", nil)
	err := s.Reload(t.Context())
	if err == nil || !strings.Contains(err.Error(), `host "b.test": read trust store "b.pem"`) {
		t.Errorf("error = %v", err)
	}
	if got := visitA(); got != "full" {
		t.Errorf("%s after a reload that failed", got)
	}
	cas.by.set("b.pem", b)
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := visitA(); got != "refused" {
		t.Errorf("%s after a reload with another CA", got)
	}
}
