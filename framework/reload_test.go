// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// readingsTold collects what an Observer is told of.
type readingsTold struct {
	mu  sync.Mutex
	all []string
}

func (r *readingsTold) observe(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s %v", what, err == nil))
}

func (r *readingsTold) seen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.all, ", ")
}

// take returns what was told since it was called before.
func (r *readingsTold) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.all, ", ")
	r.all = nil
	return all
}

// TestApply: what is kept, what is new, and what an error leaves.
func TestApply(t *testing.T) {
	var told readingsTold
	cfg := Config{
		Listeners: []Listener{{Listen: "127.0.0.1:0", Backend: echo(t)}},
		Observer:  Observer{Reloaded: told.observe},
	}
	s := serve(t, cfg)
	first, kept := s.addr(), s.now.Load().listeners[0]
	open, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	ping := func() {
		t.Helper()
		if _, err := open.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if _, err := open.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	ping()
	next := Config{Limits: Limits{HandshakeTimeout: 3 * time.Second}, Listeners: []Listener{
		{Listen: "127.0.0.1:0", Backend: "builtin:hello", ALPN: []string{"http/1.1"}},
		{Listen: "localhost:0"},
	}}
	bad := next
	bad.Listeners = append(bad.Listeners[:2:2], Listener{Listen: first})
	if err := s.Apply(t.Context(), bad); !errors.As(err, new(*ListenError)) {
		t.Errorf("an address in use: %v", err)
	}
	if got := told.take(); got != "config false" {
		t.Errorf("told %q", got)
	}
	if len(s.Addrs()) != 1 || s.now.Load().listeners[0] != kept {
		t.Error("something was taken of a configuration that is wrong")
	}
	if err := s.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := told.take(); got != "keystores true, config true" {
		t.Errorf("told %q", got)
	}
	if len(s.Addrs()) != 2 || s.addr() != first || s.now.Load().listeners[0] != kept {
		t.Errorf("addresses %v, before %s", s.Addrs(), first)
	}
	ping()
	client := s.httpClient(t, false)
	for _, a := range s.Addrs() {
		if got := fetch(t, client, "https://"+a.String()); got != "new connection" {
			t.Errorf("%s: %s", a, got)
		}
	}
	second := s.Addrs()[1].String()
	next.Listeners, next.Drain = next.Listeners[:1], 100*time.Millisecond
	if err := s.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	soon(t, "the address is free", func() bool {
		l, err := net.Listen("tcp", second)
		if err == nil {
			l.Close()
		}
		return err == nil
	})
}

// A configuration that a key manager is not made from is none that takes another.
func TestSameKeys(t *testing.T) {
	t.Parallel()
	base := Config{KeyManager: "pkix", RunDir: "/run/tlsd"}.withListeners()
	for name, tt := range map[string]struct {
		change func(*Config)
		want   bool
	}{
		"nothing":  {func(*Config) {}, true},
		"backend":  {func(c *Config) { c.Listeners = []Listener{{Backend: "tcp://a.test:1"}} }, true},
		"limits":   {func(c *Config) { c.Limits.Connections, c.Drain = 1, time.Second }, true},
		"log":      {func(c *Config) { c.LogLevels, c.Log = map[string]string{"": "debug"}, zap.NewNop() }, true},
		"observer": {func(c *Config) { c.Observer.Reloaded = func(string, error) {} }, true},
		"tier":     {func(c *Config) { c.KeyManager = "sunx509" }, false},
		"wait":     {func(c *Config) { c.PluginWait = time.Second }, false},
		"alias": {func(c *Config) {
			*c = Config{KeyManager: "pkix", RunDir: "/run/tlsd", Listeners: []Listener{{Alias: "a"}}}
		}, false},
		"constraint": {func(c *Config) { c.Options.JDKCompat = true }, false},
		"trust-file": {func(c *Config) {
			c.Listeners = []Listener{{ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "a.pem"}}}
		}, false},
	} {
		c := base
		tt.change(&c)
		if got := base.sameKeys(c.withListeners()); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestEndpointAndChildTakeARestart(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{}}})
	err := s.Apply(t.Context(), Config{KeyManager: "unix:/run/keys/km.sock"})
	if err == nil || !strings.Contains(err.Error(), "takes a restart") {
		t.Errorf("%v", err)
	}
}

// A complaint is made once for each error that stays, and never of what is no
// fault of the content.
func TestComplaint(t *testing.T) {
	core, logs := observerCore()
	s := &Server{log: zap.New(core)}
	var c complaint
	a, b := errors.New("a is damaged"), errors.New("b is damaged")
	for i, tt := range []struct {
		err   error
		again bool
		lines int
	}{
		{a, true, 0}, {nil, false, 0}, // half-written
		{a, true, 0}, {a, false, 1}, {a, false, 1}, {fmt.Errorf("call: %w", plugin.ErrUnavailable), false, 1}, {a, false, 1},
		{b, true, 1}, {b, false, 2}, {nil, false, 2}, {b, true, 2}, {b, false, 3},
	} {
		if again := c.of(s, tt.err) > 0; again != tt.again || logs.Len() != tt.lines {
			t.Errorf("step %d: again %v and %d lines, want %v and %d", i, again, logs.Len(), tt.again, tt.lines)
		}
	}
}

// Lists are warned of from a day ahead on, daily, and again when they have ended.
func TestReminders(t *testing.T) {
	core, logs := observerCore()
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	ends := time.Now().Add(72 * time.Hour)
	said, err := ruled(ca.CRL(t, testca.CRL{NextUpdate: ends}), "", ca)
	if err != nil {
		t.Fatal(err)
	}
	content := &content{said: map[ruling]*revocation{{}: said}}
	r := reminders{}
	for _, tt := range []struct {
		at    time.Duration // from the end
		lines int
	}{{-48 * time.Hour, 0}, {-23 * time.Hour, 1}, {-22 * time.Hour, 1}, {time.Hour, 2}, {2 * time.Hour, 2}, {26 * time.Hour, 3}} {
		if r.remind(zap.New(core), content, ends.Add(tt.at)); logs.Len() != tt.lines {
			t.Errorf("%v from the end: %d lines, want %d", tt.at, logs.Len(), tt.lines)
		}
	}
}

// Client CAs that revoke nobody for want of a list are warned of by subject and file:
// once, until these are others.
func TestClientCAsWithoutAList(t *testing.T) {
	t.Parallel()
	core, logs := observerCore()
	ca, bare := testca.NewRoot(t, testca.Spec{Name: "ca"}), testca.NewRoot(t, testca.Spec{Name: "bare"})
	client := bare.Issue(t, testca.Spec{Name: "client"}) // trusted as it is, and no CA
	r := reminders{}
	for i, tt := range []struct {
		crl   []byte
		lines int
	}{
		{ca.CRL(t, testca.CRL{Number: 1}), 1},
		{ca.CRL(t, testca.CRL{Number: 2}), 1},
		{testca.CRLPEM(ca.CRL(t, testca.CRL{}), bare.CRL(t, testca.CRL{})), 1},
		{ca.CRL(t, testca.CRL{Number: 3}), 2},
	} {
		said, err := ruled(tt.crl, "", ca, bare, client)
		if err != nil {
			t.Fatal(err)
		}
		c := &content{said: map[ruling]*revocation{
			{path: "clients.crl"}: said, {path: "clients.crl", expired: CRLExpiredWarn}: said,
		}}
		for days := range 3 {
			r.remind(zap.New(core), c, time.Now().Add(time.Duration(days)*25*time.Hour))
		}
		if logs.Len() != tt.lines {
			t.Fatalf("step %d: %v", i, logs.All())
		}
	}
	if got := logs.All()[0].ContextMap(); got["path"] != "clients.crl" || fmt.Sprint(got["client_cas"]) != "[CN=bare]" {
		t.Errorf("said: %v", got)
	}
}

// warning is a fake whose trust store has something to be said of.
type warning struct {
	*fake
	reads atomic.Int64
}

func (m *warning) Trust(context.Context, string, string, keymanager.PasswordRef) ([][]byte, []string, error) {
	m.reads.Add(1)
	return m.trusted, []string{"opened without its password"}, nil
}

// What a trust store makes be warned of is not warned of at each look.
func TestTrustWarningsAreNotRepeated(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	f.trusted = [][]byte{root.DER}
	core, logs := observerCore()
	m := &warning{fake: f}
	cfg := Config{
		Listeners: []Listener{{ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: filepath.Join(t.TempDir(), "a.jks")}}},
		Options:   keymanager.Options{Poll: 10 * time.Millisecond}, Log: zap.New(core),
	}
	serveKeys(t, cfg, newKeys(m, "fake", &cfg))
	soon(t, "some looks", func() bool { return m.reads.Load() > 5 })
	if n := logs.FilterMessage("trust store").Len(); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// Keystores are told of by themselves: what else is wrong is no fault of theirs.
func TestApplyTellsOfKeystores(t *testing.T) {
	t.Parallel()
	var told readingsTold
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	store := func() keymanager.Source {
		return storeOf(t, root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}))
	}
	cfg := Config{
		Tiers: testTiers(), InProcess: true, Keystores: []keymanager.Source{store()},
		Listeners: []Listener{{Listen: "127.0.0.1:0"}}, Observer: Observer{Reloaded: told.observe},
	}
	s, err := NewServer(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	missing, other, taken := cfg, cfg, cfg
	missing.Keystores = []keymanager.Source{{Paths: []string{filepath.Join(t.TempDir(), "none.p12")}}}
	other.Keystores = []keymanager.Source{store()}
	taken.Keystores = []keymanager.Source{store()}
	taken.Listeners = append(taken.Listeners[:1:1], Listener{Listen: s.Addrs()[0].String()})
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{missing, "keystores false, config false"},
		{taken, "keystores true, config false"},
		{other, "keystores true, config true"},
	} {
		err := s.Apply(t.Context(), tt.cfg)
		if got := told.take(); got != tt.want {
			t.Errorf("told %q, want %q (%v)", got, tt.want, err)
		}
	}
}

// A listener that comes with other limits has them.
func TestNewListenerHasNewLimits(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Listeners: []Listener{{}}, Limits: Limits{Idle: time.Hour}})
	next := Config{Limits: Limits{Idle: time.Minute}, Listeners: []Listener{{Listen: "127.0.0.1:0"}, {Listen: "localhost:0"}}}
	if err := s.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := s.now.Load().listeners[1].web.IdleTimeout; got != time.Minute {
		t.Errorf("idle for %v", got)
	}
}

// The address of a listener that is gone can be had at once, by a later
// configuration too.
func TestListenerComesAgain(t *testing.T) {
	t.Parallel()
	socket := "unix:" + filepath.Join(t.TempDir(), "a.sock")
	both := []Listener{{Listen: "127.0.0.1:0"}, {Listen: socket}}
	s := serve(t, Config{Listeners: both})
	for range 20 {
		for _, listeners := range [][]Listener{both[:1], both} {
			if err := s.Apply(t.Context(), Config{Listeners: listeners}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := net.Dial("unix", strings.TrimPrefix(socket, "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
