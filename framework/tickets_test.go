// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestTicketKeysRotate: a new key every 24 hours, by crypto/tls itself. Tickets of
// the last seven days are taken.
func TestTicketKeysRotate(t *testing.T) {
	var k ticketKeys
	k.roll()
	var now atomic.Int64
	k.current().Time = func() time.Time { return time.Unix(now.Load(), 0) }
	day := func(d float64) { now.Store(1_900_000_000 + int64(d*24*3600)) }
	day(0)
	state := sessionState(t)
	seal := func() []byte {
		ticket, err := k.current().EncryptTicket(tls.ConnectionState{}, state)
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	opens := func(ticket []byte) bool {
		ss, err := k.current().DecryptTicket(ticket, tls.ConnectionState{})
		if err != nil {
			t.Fatal(err)
		}
		return ss != nil
	}
	first := seal()
	for d := 0.99; d < 6.9; d++ { // somebody comes each day
		day(d)
		if seal(); !opens(first) {
			t.Fatalf("a ticket is worthless after %.2f days", d)
		}
	}
	second := seal()
	day(7.1)
	seal()
	if opens(first) {
		t.Error("a ticket is good after more than seven days")
	}
	if !opens(second) {
		t.Error("a younger one isn't any more")
	}
	k.roll()
	if opens(second) {
		t.Error("a ticket is good after the keys were rolled")
	}
}

// sessionState returns one of a real handshake.
func sessionState(t *testing.T) *tls.SessionState {
	t.Helper()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	var state *tls.SessionState
	server := &tls.Config{
		Certificates: []tls.Certificate{certOf(root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}))},
		WrapSession: func(_ tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
			state = ss
			return []byte("ticket"), nil
		},
	}
	client := clientOf(root, "a.test")
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	shake(t, client, server).ok(t)
	if state == nil {
		t.Fatal("no session")
	}
	return state
}

// RollTickets ends no connection, and lets no session be resumed.
func TestRollTickets(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}})
	for _, version := range versions() {
		cfg := clientOf(s.root, "a.test")
		cfg.MinVersion, cfg.MaxVersion, cfg.ClientSessionCache = version, version, tls.NewLRUClientSessionCache(1)
		for i, want := range []string{"full", "resumed", "full", "resumed"} {
			if i == 2 {
				s.RollTickets()
			}
			if got, err := visit(t, s.addr(), cfg); got != want {
				t.Errorf("%s, connection %d: %q, %v, want %q", tls.VersionName(version), i, got, err, want)
			}
		}
	}
}

// TestGoLooksAtChainsOfSessions: what is left to crypto/tls. Servers of one ticket
// key take no session whose chain ends in no CA of theirs, or has expired, though
// the leaf has not.
func TestGoLooksAtChainsOfSessions(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	a, b := testca.NewRoot(t, testca.Spec{Name: "A"}), testca.NewRoot(t, testca.Spec{Name: "B"})
	middle := a.Issue(t, testca.Spec{Name: "middle", IsCA: true, NotAfter: time.Now().Add(24 * time.Hour)})
	client := middle.Issue(t, testca.Spec{Name: "client", NoEKU: true})
	server := func(ca *testca.Cert, at time.Duration) *tls.Config {
		cfg := &tls.Config{
			Certificates: []tls.Certificate{certOf(root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}))},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(),
			Time: func() time.Time { return time.Now().Add(at) },
		}
		cfg.ClientCAs.AddCert(ca.Cert)
		cfg.SetSessionTicketKeys([][32]byte{{1}})
		return cfg
	}
	for name, tt := range map[string]struct {
		second *tls.Config
		want   bool
	}{
		"same":         {server(a, 0), true},
		"other-ca":     {server(b, 0), false},
		"chain-is-old": {server(a, 48*time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			eachVersion(t, root, func(t *testing.T, _ uint16, cfg *tls.Config) {
				cfg.Certificates, cfg.ClientSessionCache = []tls.Certificate{certOf(client)}, tls.NewLRUClientSessionCache(1)
				cert := &cfg.Certificates[0]
				cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
				shake(t, cfg, server(a, 0)).ok(t)
				e := shake(t, cfg, tt.second)
				if got := e.serverErr == nil && e.server.DidResume; got != tt.want {
					t.Errorf("resumed: %v (%v), want %v", got, e.serverErr, tt.want)
				}
			})
		})
	}
}
