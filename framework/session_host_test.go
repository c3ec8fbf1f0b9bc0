// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// trusting is a fake with trust stores.
type trusting struct {
	*fake
	by *trustFiles
}

// trustFiles are trust stores by path, which may change while a Server runs.
type trustFiles struct{ by sync.Map }

// get returns the first certificate of a trust store; nil: there is no such one.
func (f *trustFiles) get(path string) *testca.Cert {
	if all := f.all(path); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (f *trustFiles) all(path string) []*testca.Cert {
	all, _ := f.by.Load(path)
	certs, _ := all.([]*testca.Cert)
	return certs
}

// set puts certificates into a trust store; nil removes it.
func (f *trustFiles) set(path string, certs ...*testca.Cert) {
	if len(certs) == 1 && certs[0] == nil {
		certs = nil
	}
	f.by.Store(path, certs)
}

func (m *trusting) Trust(_ context.Context, path, _ string, _ keymanager.PasswordRef) ([][]byte, []string, error) {
	var ders [][]byte
	for _, c := range m.by.all(path) {
		ders = append(ders, c.DER)
	}
	if len(ders) == 0 {
		return nil, nil, fs.ErrNotExist
	}
	return ders, nil, nil
}

// serveTrusting runs a Server over a fake whose trust stores are those of by.
func serveTrusting(t testing.TB, cfg Config, by *trustFiles) *running {
	t.Helper()
	f, root := fakeOf(t, testca.P256)
	m := &trusting{fake: f, by: by}
	k := newKeys(m, "fake", &cfg)
	s := serveKeys(t, cfg, k)
	s.fake, s.root = f, root
	return s
}

// visit connects to addr, reads a byte and says whether the session was resumed,
// or the error.
func visit(t testing.TB, addr string, cfg *tls.Config) (string, error) {
	t.Helper()
	c, err := tls.Dial("tcp", addr, cfg)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_, _ = io.WriteString(c, "x")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return "", err
	}
	if c.ConnectionState().DidResume {
		return "resumed", nil
	}
	return "full", nil
}

// clientCAs are two CAs, their trust stores, and a client of the first.
type clientCAs struct {
	by     *trustFiles
	client tls.Certificate
}

func newClientCAs(t testing.TB) clientCAs {
	t.Helper()
	a, b := testca.NewRoot(t, testca.Spec{Name: "A"}), testca.NewRoot(t, testca.Spec{Name: "B"})
	mine := a.Issue(t, testca.Spec{Name: "client", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	by := new(trustFiles)
	by.set("a.pem", a)
	by.set("b.pem", b)
	return clientCAs{
		by:     by,
		client: tls.Certificate{Certificate: mine.Chain(), PrivateKey: mine.Key},
	}
}

// rulesOfClients are the sites of the tests of tickets.
func rulesOfClients(backend string) []Listener {
	return []Listener{
		{Backend: backend, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}},
		{Backend: backend, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "b.pem"}},
		{Backend: backend},
		{Backend: backend, ClientAuth: ClientAuthOptional, ClientCA: TrustStore{Path: "a.pem"}},
		{Backend: backend, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}},
	}
}

// TestTicketKeepsToItsRules: listeners that share their ticket keys, as those of
// a fleet do. Which of them resumes what another issued?
func TestTicketKeepsToItsRules(t *testing.T) {
	const requireA, requireB, none, optionalA, alsoA = 0, 1, 2, 3, 4
	cas := newClientCAs(t)
	s := serveTrusting(t, Config{Listeners: rulesOfClients(echo(t))}, cas.by)
	for _, l := range s.now.Load().listeners {
		l.tickets.current().SetSessionTicketKeys([][32]byte{{1}})
	}
	for _, tt := range []struct {
		name     string
		from, to int
		want     string // how the second connection begins, or its alert
	}{
		{"same", requireA, requireA, "resumed"},
		{"same-rules", requireA, alsoA, "resumed"},
		{"without-certificate", none, none, "resumed"},
		{"other-ca", requireA, requireB, "certificate required"},
		{"none-to-required", none, requireA, "full"},
		{"none-to-other-ca", none, requireB, "certificate required"},
		{"required-to-none", requireA, none, "full"},
		{"optional-to-required", optionalA, requireA, "full"},
		{"required-to-optional", requireA, optionalA, "full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachVersion(t, s.root, func(t *testing.T, version uint16, client *tls.Config) {
				client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
				client.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if info.SupportsCertificate(&cas.client) != nil {
						return new(tls.Certificate), nil
					}
					return &cas.client, nil
				}
				if got, err := visit(t, s.Addrs()[tt.from].String(), client); got != "full" {
					t.Fatalf("first connection: %q, %v", got, err)
				}
				got, err := visit(t, s.Addrs()[tt.to].String(), client)
				if err != nil {
					got = strings.TrimPrefix(err.Error(), "remote error: tls: ")
				}
				want := tt.want
				if want == "certificate required" && version == tls.VersionTLS12 {
					want = "handshake failure"
				}
				if got != want && !(version == tls.VersionTLS12 && got == "bad certificate") {
					t.Errorf("%q, want %q", got, want)
				}
			})
		})
	}
}

// TestTicketKeepsToItsHost: two names of one listener, and openssl with a ticket
// of one at the other. Server names that share one host do not share tickets
// either.
func TestTicketKeepsToItsHost(t *testing.T) {
	cas := newClientCAs(t)
	s := serveTrusting(t, Config{Listeners: []Listener{{Hosts: []Host{
		{Names: []string{"a.test", "a2.test"}, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}},
		{Names: []string{"b.test"}, ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "b.pem"}},
	}}}}, cas.by)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.crt"), filepath.Join(dir, "c.key")
	testca.WritePEM(t, cert, key, cas.by.get("a.pem").Issue(t, testca.Spec{Name: "client", NoEKU: true}))
	for _, v := range []string{"-tls1_2", "-tls1_3"} {
		for _, tt := range []struct {
			from, to string
			client   bool // the second connection has a certificate
			want     string
		}{
			{"a.test", "a.test", true, "Reused, "},
			{"a.test", "a.test", false, "Reused, "},
			{"a.test", "a2.test", true, "New, "},
			{"a.test", "a2.test", false, "SSL alert number"},
			{"a.test", "b.test", true, "SSL alert number"},
			{"a.test", "b.test", false, "SSL alert number"},
			{"a.test", "c.test", true, "New, "},
			{"c.test", "c.test", false, "Reused, "},
			{"c.test", "a.test", false, "SSL alert number"},
			{"c.test", "a.test", true, "New, "},
		} {
			t.Run(fmt.Sprintf("%s/%s-to-%s-%v", strings.TrimPrefix(v, "-"), tt.from, tt.to, tt.client), func(t *testing.T) {
				session := filepath.Join(t.TempDir(), "session")
				with := []string{"-cert", cert, "-key", key}
				args := func(name string, more ...string) []string {
					return append([]string{"s_client", v, "-connect", s.addr(), "-servername", name, "-ign_eof"}, more...)
				}
				if out, _ := tell(t, args(tt.from, append(with, "-sess_out", session)...)...); !strings.Contains(out, "New, ") {
					t.Fatalf("first connection:\n%s", out)
				}
				second := []string{"-sess_in", session}
				if tt.client {
					second = append(second, with...)
				}
				if out, _ := tell(t, args(tt.to, second...)...); !strings.Contains(out, tt.want) {
					t.Errorf("no %q:\n%s", tt.want, out)
				}
			})
		}
	}
}

// TestNewTrustEndsSessions: a reload with other client CAs, and one with the
// same, under both versions.
func TestNewTrustEndsSessions(t *testing.T) {
	cas := newClientCAs(t)
	s := serveTrusting(t, Config{Listeners: rulesOfClients(echo(t))[3:4]}, cas.by)
	eachVersion(t, s.root, func(t *testing.T, version uint16, client *tls.Config) {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i, want := range []string{"full", "resumed", "full", "resumed"} {
			if i == 2 {
				a, b := cas.by.get("a.pem"), cas.by.get("b.pem")
				cas.by.set("a.pem", b)
				cas.by.set("b.pem", a)
			}
			if err := s.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := visit(t, s.addr(), client); got != want {
				t.Errorf("connection %d: %q, %v, want %q", i, got, err, want)
			}
		}
	})
}

// TestNewTrustEndsConnections of HTTP clients with their next request, where a
// reload with the same CAs leaves them alone. The request is answered if the client's
// CA is still trusted.
func TestNewTrustEndsConnections(t *testing.T) {
	cas := newClientCAs(t)
	s := serveTrusting(t, Config{Listeners: []Listener{{
		Backend: answering(t, "backend"), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"},
	}}}, cas.by)
	a, b := cas.by.get("a.pem"), cas.by.get("b.pem")
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2-%v", h2), func(t *testing.T) {
			client := s.httpClient(t, h2)
			client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cas.client}
			for i, tt := range []struct {
				trusted []*testca.Cert
				want    string
			}{
				{[]*testca.Cert{a}, "new connection"}, {[]*testca.Cert{a}, "same connection"},
				{[]*testca.Cert{a, b}, "same connection"}, {[]*testca.Cert{a, b}, "new connection"},
				{[]*testca.Cert{b}, "421"}, {[]*testca.Cert{b}, "refused"},
			} {
				cas.by.set("a.pem", tt.trusted...)
				if err := s.Reload(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := fetch(t, client, "https://"+s.addr()); got != tt.want {
					t.Errorf("request %d: %s, want %s", i+1, got, tt.want)
				}
			}
		})
	}
}

// fetch makes a request and says what connection it took, or what went wrong.
func fetch(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	got := "new connection"
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			got = "same connection"
		}
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "refused"
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprint(resp.StatusCode)
	}
	return got
}
