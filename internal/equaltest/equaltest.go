// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package equaltest drives two key managers side by side over the same
// keystores and clock, by chance, and compares what they answer: whatever is
// quicker than another must give the same answers.
package equaltest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// Side is one of the two.
type Side struct {
	Name   string
	Select func(*keymanager.Hello) (*keymanager.Credential, error)
	Reload func() error
}

// Pool is what keystores are filled from, made once.
type Pool struct {
	start   time.Time // around which certificates begin and end, hour by hour
	entries []testca.StoreEntry
	issuers [][]byte
}

// NewPool makes certificates that begin and end around one day.
func NewPool(t testing.TB) *Pool {
	p := &Pool{start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	rng := rand.New(rand.NewPCG(5, 6))
	var cas []*testca.Cert
	for _, key := range []testca.KeyType{testca.P256, testca.RSA2048} {
		ca := testca.NewRoot(t, testca.Spec{Name: string(key), Key: key, NotBefore: p.start.AddDate(-1, 0, 0), NotAfter: p.start.AddDate(1, 0, 0)})
		cas = append(cas, ca)
		p.issuers = append(p.issuers, ca.Cert.RawSubject)
	}
	for range 40 {
		s := testca.Spec{
			Key:       pickOne(rng, testca.P256, testca.P256, testca.P384, testca.RSA2048, testca.Ed25519),
			DNS:       pickOne(rng, []string{"a.w.test"}, []string{"b.w.test"}, []string{"*.w.test"}, []string{"w.test", "*.x.test"}),
			NotBefore: p.start.Add(-48 * time.Hour), NotAfter: p.start.Add(48 * time.Hour),
			EKU: pickOne(rng, nil, nil, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}),
		}
		if rng.IntN(3) == 0 {
			s.NotBefore = p.start.Add(time.Duration(rng.IntN(6)) * time.Hour)
		}
		if rng.IntN(3) == 0 {
			s.NotAfter = p.start.Add(time.Duration(rng.IntN(6)) * time.Hour)
		}
		p.entries = append(p.entries, testca.StoreEntry{Cert: cas[rng.IntN(len(cas))].Issue(t, s)})
	}
	return p
}

func pickOne[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// pair is both sides over the same two keystores.
type pair struct {
	*Pool
	t        *testing.T
	rng      *rand.Rand
	now      time.Time
	paths    []string
	one, two Side
	last     keymanager.Hello
}

// Drive opens two sides by open and takes them through steps of a run that seed
// decides on: hellos, keystores that change for better and worse, and time that
// goes on and back. It fails t when they differ. After each change of a keystore
// both are reloaded, so that neither has noticed what the other has not.
func (p *Pool) Drive(t *testing.T, seed uint64, steps int, open func(keymanager.Env) (one, two Side)) {
	t.Helper()
	w := &pair{Pool: p, t: t, rng: rand.New(rand.NewPCG(seed, 0)), now: p.start}
	w.last = keymanager.Hello{
		Role: keymanager.RoleServer, Version: tls.VersionTLS13, Auth: keymanager.AuthRSA | keymanager.AuthECDSA,
		Schemes: schemes(5), Groups: []tls.CurveID{tls.X25519, tls.CurveP256},
	}
	w.one, w.two = open(w.env())
	for range steps {
		w.step()
	}
}

// env is what the sides are opened with.
func (w *pair) env() keymanager.Env {
	w.t.Helper()
	secret := keymanager.Secret("changeit")
	env := keymanager.Env{Now: func() time.Time { return w.now }, FirstGeneration: 3}
	dir := w.t.TempDir()
	for _, name := range []string{"one.p12", "two.p12"} {
		w.paths = append(w.paths, filepath.Join(dir, name))
		w.write(len(w.paths) - 1)
		env.Builders = append(env.Builders, keymanager.Source{
			Paths: []string{w.paths[len(w.paths)-1]}, Store: keymanager.PasswordRef{Value: &secret},
		})
	}
	rules := pickOne(w.rng, "", "secp384r1", "RSA denyAfter 2030-01-01")
	env.Options.Constraints.CertPath = &rules
	env.Options.JDKCompat = w.rng.IntN(4) == 0
	return env
}

// write fills a keystore anew.
func (w *pair) write(builder int) {
	w.t.Helper()
	entries := make([]testca.StoreEntry, 1+w.rng.IntN(4))
	for i := range entries {
		entries[i] = w.entries[w.rng.IntN(len(w.entries))]
		entries[i].Alias = fmt.Sprintf("%s%d", pickOne(w.rng, "a", "b", "1.0.c"), i)
	}
	testca.PKCS12{Iterations: 1}.Write(w.t, w.paths[builder], "changeit", entries...)
}

// spoil makes a keystore one that a reload refuses.
func (w *pair) spoil(builder int) {
	w.t.Helper()
	path := w.paths[builder]
	var err error
	switch w.rng.IntN(4) {
	case 0:
		err = os.WriteFile(path, nil, 0o600)
	case 1:
		err = os.Remove(path)
	case 2:
		testca.PKCS12{Iterations: 1}.Write(w.t, path, "another", w.entries[0])
	case 3:
		stray := w.entries[0]
		stray.Key = testca.NewKey(w.t, testca.P256)
		testca.PKCS12{Iterations: 1}.Write(w.t, path, "changeit", stray)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
}

func (w *pair) step() {
	w.t.Helper()
	switch w.rng.IntN(16) {
	case 0:
		w.write(w.rng.IntN(2))
		w.reload()
	case 1:
		w.spoil(w.rng.IntN(2))
		w.reload()
	case 2:
		w.reload()
	case 3:
		w.now = w.start.Add(time.Duration(w.rng.IntN(8)-1)*time.Hour + pickOne[time.Duration](w.rng, -1, 0, 1))
	}
	for range 4 {
		w.choose(w.hello())
	}
}

func (w *pair) reload() {
	w.t.Helper()
	one, two := w.one.Reload(), w.two.Reload()
	if fmt.Sprint(one) != fmt.Sprint(two) {
		w.t.Fatalf("reload: %s %v, %s %v", w.one.Name, one, w.two.Name, two)
	}
}

func (w *pair) choose(h *keymanager.Hello) {
	w.t.Helper()
	a, err := w.one.Select(h)
	b, err2 := w.two.Select(h)
	if fmt.Sprint(err) != fmt.Sprint(err2) || errors.Is(err, keymanager.ErrNoCredential) != errors.Is(err2, keymanager.ErrNoCredential) {
		w.t.Fatalf("%+v: %s %v, %s %v", h, w.one.Name, err, w.two.Name, err2)
	}
	if err != nil {
		return
	}
	if a.Alias != b.Alias || a.Builder != b.Builder || !slices.Equal(a.Schemes, b.Schemes) || !slices.EqualFunc(a.Chain, b.Chain, bytes.Equal) {
		w.t.Fatalf("%+v: %s %q of builder %d, %s %q of %d", h, w.one.Name, a.Alias, a.Builder, w.two.Name, b.Alias, b.Builder)
	}
	if fmt.Sprint(a.Key.Public()) != fmt.Sprint(b.Key.Public()) {
		w.t.Fatalf("%q has another key in %s", a.Alias, w.two.Name)
	}
}

// hello returns one that differs in a field or two from the last, as the fields
// take few values: so that an answer which is given again to whom it is not for
// is found out.
func (w *pair) hello() *keymanager.Hello {
	h := w.last
	for range 1 + w.rng.IntN(2) {
		w.vary(&h)
	}
	w.last = h
	return &h
}

func (w *pair) vary(h *keymanager.Hello) {
	switch w.rng.IntN(9) {
	case 0:
		h.Role, h.Issuers = keymanager.RoleServer, nil
	case 1:
		h.Role, h.Issuers = keymanager.RoleClient, pickOne(w.rng, nil, w.issuers[:1], w.issuers[1:], w.issuers)
	case 2, 3:
		h.ServerName = pickOne(w.rng, "", "a.w.test", "b.w.test", "c.w.test", "w.test", "q.x.test", "no.test", "other.test", "::1")
	case 4:
		h.Alias = pickOne(w.rng, "", "", "A0", "b1", "nope")
	case 5:
		h.Version = pickOne[uint16](w.rng, tls.VersionTLS12, tls.VersionTLS13)
	case 6:
		h.Auth = keymanager.Auth(1 + w.rng.IntN(3))
	case 7:
		h.Schemes = pickOne(w.rng, schemes(5), schemes(1), []tls.SignatureScheme{tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP256AndSHA256},
			[]tls.SignatureScheme{tls.ECDSAWithP384AndSHA384, tls.PSSWithSHA256}, []tls.SignatureScheme{tls.Ed25519, tls.ECDSAWithP256AndSHA256})
		h.ChainsElsewhere = w.rng.IntN(2) == 0
	case 8:
		h.Groups = pickOne(w.rng, []tls.CurveID{tls.X25519}, []tls.CurveID{tls.X25519, tls.CurveP256}, []tls.CurveID{tls.CurveP256, tls.CurveP384})
	}
}

// schemes returns the first n that clients commonly offer.
func schemes(n int) []tls.SignatureScheme {
	return []tls.SignatureScheme{
		tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256, tls.Ed25519, tls.ECDSAWithP384AndSHA384, tls.PKCS1WithSHA256,
	}[:n]
}
