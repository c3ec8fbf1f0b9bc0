// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// put replaces the file at path by one with content, as people should.
func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+"~", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// soon waits until ok.
func soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// reasons collects why handshakes failed.
type reasons struct {
	mu  sync.Mutex
	all []Reason
}

func (r *reasons) observe(e HandshakeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Reason != "" {
		r.all = append(r.all, e.Reason)
	}
}

func (r *reasons) seen() []Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func certOf(c *testca.Cert) tls.Certificate {
	return tls.Certificate{Certificate: c.Chain(), PrivateKey: c.Key}
}

// TestRevokedClient is let in, is revoked, and is refused in full handshakes and
// by its ticket; another keeps its session where the list revokes nobody else.
func TestRevokedClient(t *testing.T) {
	for _, version := range versions() {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			cas := newClientCAs(t)
			a := cas.by.get("a.pem")
			mallory, alice := a.Issue(t, testca.Spec{Name: "mallory", NoEKU: true}), a.Issue(t, testca.Spec{Name: "alice", NoEKU: true})
			list := filepath.Join(t.TempDir(), "clients.crl")
			put(t, list, a.CRL(t, testca.CRL{Number: 1}))
			var why reasons
			s := serveTrusting(t, Config{
				Listeners: []Listener{{Backend: echo(t), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list}},
				Observer:  Observer{Handshake: why.observe},
			}, cas.by)
			client := func(c *testca.Cert) *tls.Config {
				cfg := clientOf(s.root, "a.test")
				cfg.MinVersion, cfg.MaxVersion = version, version
				cfg.Certificates, cfg.ClientSessionCache = []tls.Certificate{certOf(c)}, tls.NewLRUClientSessionCache(1)
				return cfg
			}
			evil, good := client(mallory), client(alice)
			for _, want := range []string{"full", "resumed"} {
				for _, cfg := range []*tls.Config{evil, good} {
					if got, err := visit(t, s.addr(), cfg); got != want {
						t.Fatalf("%q, %v, want %q", got, err, want)
					}
				}
			}
			put(t, list, testca.CRLPEM(a.CRL(t, testca.CRL{Number: 2, Revoked: []*testca.Cert{mallory}})))
			soon(t, "the revoked client is refused by its ticket", func() bool {
				_, err := visit(t, s.addr(), evil)
				return err != nil
			})
			_, err := visit(t, s.addr(), client(mallory))
			if err == nil || !strings.Contains(err.Error(), "bad certificate") {
				t.Errorf("a full handshake: %v", err)
			}
			soon(t, "two refusals", func() bool { return slices.Equal(why.seen(), []Reason{ReasonRevoked, ReasonRevoked}) })
			for _, want := range []string{"full", "resumed"} {
				if got, err := visit(t, s.addr(), good); got != want {
					t.Errorf("the other client: %q, %v, want %q", got, err, want)
				}
			}
		})
	}
}

// TestListGoesOutOfDate while sessions are there: crypto/tls asks for resumed ones
// too.
func TestListGoesOutOfDate(t *testing.T) {
	for _, version := range versions() {
		for _, expired := range []CRLExpired{CRLExpiredRefuse, CRLExpiredWarn} {
			t.Run(fmt.Sprintf("%s-%s", tls.VersionName(version), expired), func(t *testing.T) {
				t.Parallel()
				cas := newClientCAs(t)
				list := filepath.Join(t.TempDir(), "clients.crl")
				put(t, list, cas.by.get("a.pem").CRL(t, testca.CRL{}))
				core, logs := observerCore()
				s := serveTrusting(t, Config{
					Listeners: []Listener{{
						Backend: echo(t), ClientAuth: ClientAuthOptional, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list, CRLExpired: expired,
					}},
					Log: zap.New(core),
				}, cas.by)
				cfg := clientOf(s.root, "a.test")
				cfg.MinVersion, cfg.MaxVersion = version, version
				cfg.Certificates, cfg.ClientSessionCache = []tls.Certificate{cas.client}, tls.NewLRUClientSessionCache(1)
				for _, want := range []string{"full", "resumed"} {
					if got, err := visit(t, s.addr(), cfg); got != want {
						t.Fatalf("%q, %v, want %q", got, err, want)
					}
				}
				put(t, list, cas.by.get("a.pem").CRL(t, testca.CRL{NextUpdate: time.Now().Add(-time.Second)}))
				soon(t, "a line about the list", func() bool { return logs.FilterMessageSnippet("revocation list is out of date").Len() == 1 })
				got, err := visit(t, s.addr(), cfg)
				if want := expired == CRLExpiredRefuse; (err != nil) != want {
					t.Errorf("%q, %v; refused is to be %v", got, err, want)
				}
				if expired == CRLExpiredWarn && got != "resumed" {
					t.Errorf("%q: nobody else is revoked", got)
				}
				without := clientOf(s.root, "a.test")
				if _, err := visit(t, s.addr(), without); err != nil {
					t.Errorf("a client without a certificate: %v", err)
				}
			})
		}
	}
}

// TestRevokedConnection: a request on a connection whose client was revoked
// meanwhile gets 403, and no other one; the connections of others go on.
func TestRevokedConnection(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2-%v", h2), func(t *testing.T) {
			t.Parallel()
			cas := newClientCAs(t)
			a := cas.by.get("a.pem")
			mallory, alice := a.Issue(t, testca.Spec{Name: "mallory", NoEKU: true}), a.Issue(t, testca.Spec{Name: "alice", NoEKU: true})
			list := filepath.Join(t.TempDir(), "clients.crl")
			put(t, list, a.CRL(t, testca.CRL{}))
			s := serveTrusting(t, Config{Listeners: []Listener{{
				Backend: answering(t, "backend"), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list,
			}}}, cas.by)
			client := func(c *testca.Cert) *http.Client {
				client := s.httpClient(t, h2)
				client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{certOf(c)}
				return client
			}
			evil, good := client(mallory), client(alice)
			for _, c := range []*http.Client{evil, good} {
				if got := fetch(t, c, "https://"+s.addr()); got != "new connection" {
					t.Fatal(got)
				}
			}
			put(t, list, a.CRL(t, testca.CRL{Revoked: []*testca.Cert{mallory}}))
			soon(t, "403", func() bool { return status(t, evil, "https://"+s.addr()) == http.StatusForbidden })
			if got := fetch(t, evil, "https://"+s.addr()); got != "refused" {
				t.Errorf("the revoked client's next request: %s", got)
			}
			if got := fetch(t, good, "https://"+s.addr()); got != "same connection" {
				t.Errorf("the other client's: %s", got)
			}
		})
	}
}

// status asks for url and returns the status, 0 for none.
func status(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// A host's own CAs have lists of their own or none; a host that only has a list
// has it for the listener's.
func TestHostsHaveTheirLists(t *testing.T) {
	t.Parallel()
	ca := func(path string) TrustStore { return TrustStore{Path: path} }
	l := Listener{ClientAuth: ClientAuthRequire, ClientCA: ca("a.pem"), ClientCRL: "a.crl"}
	for _, tt := range []struct {
		host Host
		want string
	}{
		{Host{}, "a.crl"},
		{Host{ClientCRL: "other.crl"}, "other.crl"},
		{Host{ClientCA: ca("b.pem")}, ""},
		{Host{ClientCA: ca("b.pem"), ClientCRL: "b.crl"}, "b.crl"},
		{Host{ClientAuth: ClientAuthNone}, ""},
	} {
		site := tt.host.under(l)
		if got := site.crl(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.host, got, tt.want)
		}
	}
}

// A list that was damaged for a while and is again what it was is told to be good.
func TestListIsGoodAgain(t *testing.T) {
	t.Parallel()
	cas := newClientCAs(t)
	list, good := filepath.Join(t.TempDir(), "clients.crl"), cas.by.get("a.pem").CRL(t, testca.CRL{})
	put(t, list, good)
	var told readingsTold
	serveTrusting(t, Config{
		Listeners: []Listener{{ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list}},
		Observer:  Observer{Reloaded: told.observe},
	}, cas.by)
	put(t, list, good[:len(good)-1])
	soon(t, "a failed reading", func() bool { return told.seen() == "crl false" })
	put(t, list, good)
	soon(t, "a good reading", func() bool { return told.seen() == "crl false, trust true, crl true" })
}

// TestGoodAgainIsTold whatever became of the list meanwhile, and whoever read it when
// it was damaged.
func TestGoodAgainIsTold(t *testing.T) {
	t.Parallel()
	cas := newClientCAs(t)
	list, good := filepath.Join(t.TempDir(), "clients.crl"), cas.by.get("a.pem").CRL(t, testca.CRL{})
	put(t, list, good)
	var told readingsTold
	f, _ := fakeOf(t, testca.P256)
	cfg := Config{
		Listeners: []Listener{{Listen: "127.0.0.1:0", ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list}},
		Observer:  Observer{Reloaded: told.observe},
	}.withListeners()
	s, err := newServer(t.Context(), cfg, newKeys(&trusting{fake: f, by: cas.by}, "fake", &cfg)) // nobody watches but this test
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var trouble complaint
	look := func() { trouble.of(s, s.refresh(t.Context())) }
	for i, step := range []struct {
		list []byte // nil: there is none
		read func()
		want string
	}{
		{good[:len(good)-1], look, ""},
		{good[:len(good)-1], look, "crl false"},
		{nil, look, ""},
		{good, look, "trust true, crl true"},
		{good, look, ""},
		{good[:len(good)-1], func() { _ = s.Reload(t.Context()) }, "crl false"},
		{good, look, "trust true, crl true"},
		{good, look, ""},
	} {
		if step.list != nil {
			put(t, list, step.list)
		} else if err := os.Remove(list); err != nil {
			t.Fatal(err)
		}
		step.read()
		if got := told.take(); got != step.want {
			t.Errorf("step %d: told %q, want %q", i, got, step.want)
		}
	}
}

// While there is no key process to read trust stores, lists count all the same, and
// the trust stores in use stay.
func TestListIsTakenWithoutAKeyProcess(t *testing.T) {
	t.Parallel()
	f, root := fakeOf(t, testca.P256)
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	f.trusted = [][]byte{ca.DER}
	mallory, alice := ca.Issue(t, testca.Spec{Name: "mallory", NoEKU: true}), ca.Issue(t, testca.Spec{Name: "alice", NoEKU: true})
	list := filepath.Join(t.TempDir(), "clients.crl")
	put(t, list, ca.CRL(t, testca.CRL{}))
	var told readingsTold
	cfg := Config{
		Listeners: []Listener{{Backend: echo(t), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}, ClientCRL: list}},
		Observer:  Observer{Reloaded: told.observe},
	}
	s := serveKeys(t, cfg, newKeys(f, "fake", &cfg))
	visitAs := func(c *testca.Cert) error {
		cfg := clientOf(root, "a.test")
		cfg.Certificates = []tls.Certificate{certOf(c)}
		_, err := visit(t, s.addr(), cfg)
		return err
	}
	down := fmt.Errorf("call: %w", plugin.ErrUnavailable)
	f.trustErr.Store(&down)
	put(t, list, ca.CRL(t, testca.CRL{Revoked: []*testca.Cert{mallory}}))
	soon(t, "the revoked client is refused", func() bool { return visitAs(mallory) != nil })
	if err := visitAs(alice); err != nil {
		t.Errorf("the other client: %v", err)
	}
	soon(t, "a word of the list alone", func() bool { return told.seen() == "crl true" })
	put(t, list, []byte("rubbish"))
	soon(t, "a word of a list that is damaged", func() bool { return told.seen() == "crl true, crl false" })
}
