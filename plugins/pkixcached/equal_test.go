// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package pkixcached_test

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
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// FuzzAnswersAsPkix drives pkix and pkixcached side by side over the same files
// and clock: hellos, keystores that change for better and worse, reloads, and
// time that goes on and back. At each step both give the same entry or the same
// error.
func FuzzAnswersAsPkix(f *testing.F) {
	p := newPool(f)
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &pair{pool: p, t: t, rng: rand.New(rand.NewPCG(seed, 0)), now: p.start}
		w.open()
		for range 40 {
			w.step()
		}
	})
}

// pool is what keystores are filled from, made once.
type pool struct {
	start   time.Time // around which certificates begin and end, hour by hour
	entries []testca.StoreEntry
	issuers [][]byte
}

func newPool(t testing.TB) *pool {
	p := &pool{start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
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

// pair is both tiers over the same two keystores.
type pair struct {
	*pool
	t            *testing.T
	rng          *rand.Rand
	now          time.Time
	paths        []string
	plain, cache keymanager.KeyManager
}

func (w *pair) open() {
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
	var err, err2 error
	w.plain, err = pkix.Tier().Open(w.t.Context(), env)
	w.cache, err2 = pkixcached.Tier().Open(w.t.Context(), env)
	if err != nil || err2 != nil {
		w.t.Fatalf("open: pkix %v, pkixcached %v", err, err2)
	}
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
	switch w.rng.IntN(8) {
	case 0:
		w.write(w.rng.IntN(2))
	case 1:
		w.spoil(w.rng.IntN(2))
	case 2, 3:
		w.reload()
	case 4:
		w.now = w.start.Add(time.Duration(w.rng.IntN(8)-1)*time.Hour + pickOne[time.Duration](w.rng, -1, 0, 1))
	default:
		w.choose()
	}
	w.choose()
}

func (w *pair) reload() {
	w.t.Helper()
	plain := w.plain.(keymanager.Reloader).Reload(w.t.Context())
	cache := w.cache.(keymanager.Reloader).Reload(w.t.Context())
	if fmt.Sprint(plain) != fmt.Sprint(cache) {
		w.t.Fatalf("reload: pkix %v, pkixcached %v", plain, cache)
	}
}

func (w *pair) choose() {
	w.t.Helper()
	h := w.hello()
	a, err := w.plain.Select(w.t.Context(), h)
	b, err2 := w.cache.Select(w.t.Context(), h)
	if fmt.Sprint(err) != fmt.Sprint(err2) || errors.Is(err, keymanager.ErrNoCredential) != errors.Is(err2, keymanager.ErrNoCredential) {
		w.t.Fatalf("%+v: pkix %v, pkixcached %v", h, err, err2)
	}
	if err != nil {
		return
	}
	if a.Alias != b.Alias || a.Builder != b.Builder || a.Generation != b.Generation || !slices.Equal(a.Schemes, b.Schemes) ||
		!slices.EqualFunc(a.Chain, b.Chain, bytes.Equal) {
		w.t.Fatalf("%+v: pkix %q of builder %d in generation %d, pkixcached %q of %d in %d",
			h, a.Alias, a.Builder, a.Generation, b.Alias, b.Builder, b.Generation)
	}
	if fmt.Sprint(a.Key.Public()) != fmt.Sprint(b.Key.Public()) {
		w.t.Fatalf("%q has another key under pkixcached", a.Alias)
	}
}

func (w *pair) hello() *keymanager.Hello {
	schemes := []tls.SignatureScheme{
		tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.Ed25519,
	}
	w.rng.Shuffle(len(schemes), func(i, j int) { schemes[i], schemes[j] = schemes[j], schemes[i] })
	h := &keymanager.Hello{
		Role:       pickOne(w.rng, keymanager.RoleServer, keymanager.RoleServer, keymanager.RoleClient),
		ServerName: pickOne(w.rng, "", "a.w.test", "b.w.test", "c.w.test", "w.test", "q.x.test", "no.test"),
		Alias:      pickOne(w.rng, "", "", "", "A0", "b1", "nope"),
		Version:    pickOne[uint16](w.rng, tls.VersionTLS12, tls.VersionTLS13),
		Auth:       keymanager.Auth(w.rng.IntN(4)),
		Schemes:    schemes[:1+w.rng.IntN(len(schemes))],
		Groups:     []tls.CurveID{tls.X25519, tls.CurveP256},
	}
	if h.Role == keymanager.RoleClient && w.rng.IntN(2) == 0 {
		h.Issuers = w.issuers[:1]
	}
	return h
}
