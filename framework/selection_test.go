// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// reusing is a key manager whose answers are good for an hour and depend on
// what choose's do.
func reusing(t *testing.T) (*fake, *testca.Cert) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	f := &fake{
		certs: []*testca.Cert{root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test", "*.w.test"}})},
		reuse: keymanager.Reuse{
			Vary: keymanager.FieldRole | keymanager.FieldAlias | keymanager.FieldServerName | keymanager.FieldVersion | keymanager.FieldSchemes,
			From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour),
		},
		change: keymanager.Change{Generation: 1, Names: []string{"a.test"}, WildcardParents: []string{"w.test"}, NamesKnown: true},
	}
	f.generation.Store(1)
	return f, root
}

// await waits until k has heard of its generation's names.
func await(t *testing.T, k *Keys) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if e := k.known.current.Load(); e != nil && e.answers.names.Load() != nil {
			return
		}
	}
	t.Fatal("the names of the generation did not become known")
}

func hello(name string) *keymanager.Hello {
	return &keymanager.Hello{
		Role: keymanager.RoleServer, Version: tls.VersionTLS13, Auth: keymanager.AuthECDSA | keymanager.AuthRSA,
		ServerName: name, Schemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}
}

// certificateFor has k answer h and fails the test if it does not.
func certificateFor(t *testing.T, k *Keys, h *keymanager.Hello) *tls.Certificate {
	t.Helper()
	cert, err := k.credential(&handshake{ctx: t.Context()}, h)
	if err != nil || len(cert.Certificate) == 0 {
		t.Fatalf("credential = %v, %v", cert, err)
	}
	return cert
}

// A second full handshake like the first costs one signature and no selection.
func TestSecondHandshakeSelectsNothing(t *testing.T) {
	f, root := reusing(t)
	f.reuse.Vary |= keymanager.FieldGroups | keymanager.FieldALPN
	k, _ := f.keys(t)
	await(t, k)
	for range 3 {
		shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t)
	}
	if f.selects.Load() != 1 || f.signs.Load() != 3 {
		t.Errorf("%d selections and %d signatures for three handshakes, want 1 and 3", f.selects.Load(), f.signs.Load())
	}
}

func TestWhatHelloIsAnsweredAnew(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*keymanager.Hello)
		again  bool
	}{
		"same":              {func(*keymanager.Hello) {}, false},
		"connection":        {func(h *keymanager.Hello) { h.ConnID, h.Peer = "7", "127.0.0.1:7" }, false},
		"field_not_varied":  {func(h *keymanager.Hello) { h.ALPN = []string{"h2"} }, false},
		"name_in_capitals":  {func(h *keymanager.Hello) { h.ServerName = "A.test" }, false},
		"no_name":           {func(h *keymanager.Hello) { h.ServerName = "" }, true},
		"unknown_name":      {func(h *keymanager.Hello) { h.ServerName = "b.test" }, true},
		"wildcard":          {func(h *keymanager.Hello) { h.ServerName = "b.w.test" }, true},
		"version":           {func(h *keymanager.Hello) { h.Version = tls.VersionTLS12 }, true},
		"role":              {func(h *keymanager.Hello) { h.Role = keymanager.RoleClient }, true},
		"alias":             {func(h *keymanager.Hello) { h.Alias = "other" }, true},
		"order_of_schemes":  {func(h *keymanager.Hello) { h.Schemes = append(h.Schemes, tls.Ed25519) }, true},
		"another_scheme_at": {func(h *keymanager.Hello) { h.Schemes = append([]tls.SignatureScheme{tls.Ed25519}, h.Schemes...) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := reusing(t)
			k, _ := f.keys(t)
			await(t, k)
			certificateFor(t, k, hello("a.test"))
			h := hello("a.test")
			c.change(h)
			certificateFor(t, k, h)
			if again := f.selects.Load() == 2; again != c.again {
				t.Errorf("selected again: %v, want %v", again, c.again)
			}
		})
	}
}

// What makes answers useless, one by one: each leaves the next handshake a
// selection.
func TestAnswersAreNotKeptOnAnyDoubt(t *testing.T) {
	for name, doubt := range map[string]func(*fake, *Keys){
		"newer_generation_told":    func(_ *fake, k *Keys) { k.known.learn(&keymanager.Change{Generation: 2, NamesKnown: true}) },
		"newer_generation_replied": func(f *fake, _ *Keys) { f.generation.Store(2) },
		"not_watched":              func(f *fake, _ *Keys) { f.deaf.Store(true) },
		"too_late":                 func(f *fake, k *Keys) { k.now = func() time.Time { return f.reuse.Until } },
		"too_early":                func(f *fake, k *Keys) { k.now = func() time.Time { return f.reuse.From.Add(-1) } },
		"wrong_signature": func(f *fake, k *Keys) {
			k.known.at(1).state(keymanager.KeyIDOf(f.certs[0].Cert)).bad.Store(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := reusing(t)
			k, _ := f.keys(t)
			await(t, k)
			certificateFor(t, k, hello("a.test"))
			doubt(f, k)
			certificateFor(t, k, hello("a.test"))
			if n := f.selects.Load(); n != 2 {
				t.Errorf("%d selections, want 2", n)
			}
		})
	}
}

func TestAnswersForOneHandshakeAreNotKept(t *testing.T) {
	for name, spoil := range map[string]func(*fake){
		"no_reuse":        func(f *fake) { f.reuse = keymanager.Reuse{} },
		"names_not_known": func(f *fake) { f.change.NamesKnown = false },
		"old_generation":  func(f *fake) { f.change.Generation = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := reusing(t)
			spoil(f)
			k, _ := f.keys(t)
			for k.known.current.Load() == nil {
				time.Sleep(time.Millisecond)
			}
			certificateFor(t, k, hello("a.test"))
			certificateFor(t, k, hello("a.test"))
			if n := f.selects.Load(); n != 2 {
				t.Errorf("%d selections, want 2", n)
			}
		})
	}
}

// Names that nobody's certificate carries can't fill the memory, nor drive out
// what others need.
func TestStrangersNamesAreOne(t *testing.T) {
	f, _ := reusing(t)
	k, _ := f.keys(t)
	await(t, k)
	for i := range 100 {
		certificateFor(t, k, hello(fmt.Sprintf("%d.strange.test", i)))
		certificateFor(t, k, hello(fmt.Sprintf("%d.w.test", i)))
	}
	if n := f.selects.Load(); n != 2 {
		t.Errorf("%d selections for 100 unknown names and 100 of one wildcard, want 2", n)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	f, _ := reusing(t)
	k, _ := f.keys(t)
	await(t, k)
	for i := range maxAnswers + 100 {
		h := hello("a.test")
		h.Schemes = append(h.Schemes, tls.SignatureScheme(i))
		certificateFor(t, k, h)
	}
	if n := len(k.known.at(1).answers.kept); n != maxAnswers {
		t.Errorf("%d answers are kept, want %d", n, maxAnswers)
	}
}

// While there is no key process a session of TLS 1.2 is resumed all the same,
// and a full handshake fails as it must.
func TestResumptionOutlivesKeyProcess(t *testing.T) {
	f, root := reusing(t)
	k, _ := f.keys(t)
	await(t, k)
	server := k.TLSConfig()
	client := clientOf(root, "a.test")
	client.MaxVersion, client.ClientSessionCache = tls.VersionTLS12, tls.NewLRUClientSessionCache(1)
	shake(t, client, server).ok(t)
	f.selectErr = errors.New("gone")
	f.deaf.Store(true)
	if e := shake(t, client, server).ok(t); !e.client.DidResume {
		t.Error("the session was not resumed")
	}
	full := clientOf(root, "a.test")
	shake(t, full, server).alert(t, "internal error")
}

// With debug on each handshake is explained, and so each choice is made.
func TestDebugSelectsEachTime(t *testing.T) {
	f, _ := reusing(t)
	k, _ := f.keys(t)
	l, err := logging.New(logging.Config{Levels: map[string]string{logging.KeyManager: "debug"}, Output: discard{}})
	if err != nil {
		t.Fatal(err)
	}
	k.log = l.Zap().Named(logging.KeyManager).With(zap.Bool("test", true))
	await(t, k)
	certificateFor(t, k, hello("a.test"))
	certificateFor(t, k, hello("a.test"))
	if n := f.selects.Load(); n != 2 {
		t.Errorf("%d selections, want 2", n)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Sync() error                 { return nil }

func TestObserverIsToldOfSelections(t *testing.T) {
	f, _ := reusing(t)
	var reused, asked, failed int
	cfg := Config{Observer: Observer{Selection: func(again bool, err error) {
		switch {
		case err != nil:
			failed++
		case again:
			reused++
		default:
			asked++
		}
	}}}
	k := newKeys(f, "fake", &cfg)
	t.Cleanup(func() { _ = k.Close() })
	await(t, k)
	for range 3 {
		certificateFor(t, k, hello("a.test"))
	}
	f.selectErr = keymanager.ErrNoCredential
	if _, err := k.credential(&handshake{ctx: t.Context()}, hello("")); err != nil {
		t.Fatal(err)
	}
	if reused != 2 || asked != 1 || failed != 1 {
		t.Errorf("reused %d, asked %d, failed %d; want 2, 1, 1", reused, asked, failed)
	}
}

func TestKnownNames(t *testing.T) {
	n := newKnownNames(&keymanager.Change{
		Names: []string{"a.test", "192.0.2.1", "::1"}, WildcardParents: []string{"w.test", "test"},
	})
	for name, want := range map[string]knownName{
		"":                {},
		"a.test":          {exactName, "a.test"}, // and test's wildcard, which ranks behind
		"A.Test.":         {exactName, "a.test"},
		"b.test":          {wildcardName, "test"},
		"b.w.test":        {wildcardName, "w.test"},
		"c.b.w.test":      {unknownName, ""},
		"w.test":          {wildcardName, "test"},
		"192.0.2.1":       {exactName, "192.0.2.1"},
		"[::1]":           {exactName, "::1"},
		"0:0:0:0:0:0:0:1": {exactName, "::1"},
		"2001:db8::1":     {unknownName, ""},
		"no such.w.test":  {unknownName, ""}, // no certificate can carry it
		"..":              {unknownName, ""},
	} {
		if got := n.find(name); got != want {
			t.Errorf("%q is known as %v, want %v", name, got, want)
		}
	}
}
