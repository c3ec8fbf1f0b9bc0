// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// world is what random stores and hellos are made of: few enough names, kinds
// and instants that they meet.
type world struct {
	pool    []keymanager.Entry
	issuers [][]byte
	start   time.Time // around which certificates begin and end, hour by hour
}

const worldHours = 6

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	span := testca.Spec{NotBefore: w.start.AddDate(-1, 0, 0), NotAfter: w.start.AddDate(1, 0, 0)}
	ca := func(name string, key testca.KeyType) *testca.Cert {
		s := span
		s.Name, s.Key = name, key
		return testca.NewRoot(t, s)
	}
	cas := []*testca.Cert{ca("ec", testca.P256), ca("rsa", testca.RSA2048), ca("ed", testca.Ed25519)}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, issuer := range cas {
		w.issuers = append(w.issuers, issuer.Cert.RawSubject)
	}
	for _, names := range [][]string{{"a.w.test"}, {"b.w.test", "*.x.test"}, {"*.w.test"}, {"a.w.test", "*.w.test"}, {"w.test"}, nil} {
		for _, key := range []testca.KeyType{testca.P256, testca.P384, testca.RSA2048, testca.Ed25519} {
			for range 4 {
				e := w.issue(t, rng, cas[rng.IntN(len(cas))], testca.Spec{DNS: names, Key: key})
				w.pool = append(w.pool, e)
			}
		}
	}
	return w
}

func (w *world) issue(t testing.TB, rng *rand.Rand, ca *testca.Cert, s testca.Spec) keymanager.Entry {
	t.Helper()
	s.NotBefore, s.NotAfter = w.start.Add(-24*time.Hour), w.start.Add(24*time.Hour)
	if rng.IntN(3) == 0 {
		s.NotBefore = w.start.Add(time.Duration(rng.IntN(worldHours)) * time.Hour)
	}
	if rng.IntN(3) == 0 {
		s.NotAfter = w.start.Add(time.Duration(rng.IntN(worldHours)) * time.Hour)
	}
	if rng.IntN(4) == 0 {
		s.EKU = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	e := entry("", ca.Issue(t, s))
	if rng.IntN(3) == 0 {
		e = withRoot(e, ca)
	}
	return e
}

func (w *world) aliases() []string { return []string{"a", "B", "c", "D"} }

func (w *world) store(rng *rand.Rand) []keymanager.Entry {
	entries := make([]keymanager.Entry, 1+rng.IntN(12))
	for i := range entries {
		e := w.pool[rng.IntN(len(w.pool))]
		e.Alias, e.Builder = w.aliases()[rng.IntN(4)], rng.IntN(3)
		e.Usable = i == 0 || rng.IntN(8) > 0
		if rng.IntN(8) == 0 {
			e.Schemes = []tls.SignatureScheme{tls.PSSWithSHA256, tls.ECDSAWithP256AndSHA256}
		}
		entries[i] = e
	}
	return entries
}

func (w *world) env(rng *rand.Rand, entries []keymanager.Entry, now *time.Time) keymanager.Env {
	env := keymanager.Env{Now: func() time.Time { return *now }}
	if rng.IntN(3) == 0 {
		env.Options.DefaultAlias = strings.ToUpper(entries[0].Alias)
	}
	certPath := []string{"", "secp384r1", "RSA denyAfter 2030-01-01", "SHA256withECDSA usage TLSServer"}[rng.IntN(4)]
	tlsRules := []string{"", "Ed25519 denyAfter 2030-01-01", "rsa_pss_rsae_sha256 usage HandshakeSignature & denyAfter 2030-01-01"}[rng.IntN(3)]
	env.Options.Constraints = keymanager.Constraints{CertPath: &certPath, TLS: &tlsRules}
	return env
}

func (w *world) hello(rng *rand.Rand) *keymanager.Hello {
	h := &keymanager.Hello{}
	for _, f := range fieldsOfHello() {
		w.fill(rng, h, f)
	}
	return h
}

func fieldsOfHello() []keymanager.Fields {
	return []keymanager.Fields{
		keymanager.FieldRole, keymanager.FieldListener, keymanager.FieldAlias, keymanager.FieldServerName,
		keymanager.FieldVersion, keymanager.FieldAuth, keymanager.FieldSchemes, keymanager.FieldGroups,
		keymanager.FieldALPN, keymanager.FieldIssuers, keymanager.FieldChainsElsewhere,
	}
}

// fill sets one field of a hello at random.
func (w *world) fill(rng *rand.Rand, h *keymanager.Hello, f keymanager.Fields) {
	switch f {
	case keymanager.FieldRole:
		h.Role = []keymanager.Role{keymanager.RoleServer, keymanager.RoleServer, keymanager.RoleClient}[rng.IntN(3)]
	case keymanager.FieldListener:
		h.Listener = fmt.Sprint(rng.IntN(9))
	case keymanager.FieldAlias:
		h.Alias = append([]string{"", "", "", "", "nope"}, "A", "b", "C")[rng.IntN(8)]
	case keymanager.FieldServerName:
		h.ServerName = []string{"", "a.w.test", "b.w.test", "c.w.test", "w.test", "q.x.test", "no.test", "*.w.test"}[rng.IntN(8)]
	case keymanager.FieldVersion:
		h.Version = []uint16{tls.VersionTLS12, tls.VersionTLS13}[rng.IntN(2)]
	case keymanager.FieldAuth:
		h.Auth = keymanager.Auth(rng.IntN(4))
	case keymanager.FieldSchemes:
		h.Schemes = shuffled(rng, []tls.SignatureScheme{
			tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.PSSWithSHA256, tls.PSSWithSHA512,
			tls.PKCS1WithSHA256, tls.Ed25519, 0x0a0a,
		})
	case keymanager.FieldGroups:
		h.Groups = shuffled(rng, []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384})
	case keymanager.FieldALPN:
		h.ALPN = shuffled(rng, []string{"h2", "http/1.1"})
	case keymanager.FieldIssuers:
		h.Issuers = shuffled(rng, w.issuers)
	case keymanager.FieldChainsElsewhere:
		h.ChainsElsewhere = rng.IntN(2) == 0
	}
}

// shuffled returns some elements of s in some order.
func shuffled[T any](rng *rand.Rand, s []T) []T {
	out := make([]T, 0, len(s))
	for _, i := range rng.Perm(len(s))[rng.IntN(len(s)+1):] {
		out = append(out, s[i])
	}
	return out
}

func (w *world) instant(rng *rand.Rand) time.Time {
	t := w.start.Add(time.Duration(rng.IntN(worldHours+2)-1) * time.Hour)
	return t.Add([]time.Duration{-1, 0, 1, time.Minute}[rng.IntN(4)])
}

// FuzzIndexAgreesWithLinearChoice holds the indexed choice against the one that
// looks at every entry, over random stores, hellos and clocks.
func FuzzIndexAgreesWithLinearChoice(f *testing.F) {
	w := newWorld(f)
	for seed := range uint64(150) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		for i, mk := range []maker{New, NewUnchecked, newAsJDK} {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			var now time.Time
			entries := w.store(rng)
			now = w.instant(rng)
			c := mustNew(t, mk, w.env(rng, entries, &now), entries...)
			for range 40 {
				now = w.instant(rng)
				h := w.hello(rng)
				checkAgainstLinear(t, c, h)
				checkReuse(t, w, rng, c, h, &now)
			}
		}
	})
}

func checkAgainstLinear(t *testing.T, c *Chooser, h *keymanager.Hello) {
	t.Helper()
	v := c.Verdicts(h)[0]
	cred, err := c.Select(h)
	if err != nil {
		if !v.Out {
			t.Fatalf("the index has nothing, the linear choice %+v for %+v", v, h)
		}
		return
	}
	if v.Out || cred.Alias != v.Alias || cred.Builder != v.Builder {
		t.Fatalf("the index chooses %q of builder %d, the linear choice %+v for %+v", cred.Alias, cred.Builder, v, h)
	}
}

// checkReuse changes what the answer does not vary by, and the clock within its
// span, and expects the same answer.
func checkReuse(t *testing.T, w *world, rng *rand.Rand, c *Chooser, h *keymanager.Hello, now *time.Time) {
	t.Helper()
	first, err := c.Select(h)
	if err != nil {
		return
	}
	other := *h
	for _, f := range fieldsOfHello() {
		if first.Reuse.Vary&f == 0 {
			w.fill(rng, &other, f)
		}
	}
	span := first.Reuse
	if now.Before(span.From) || !now.Before(span.Until) {
		t.Fatalf("the answer at %v holds from %v until %v", now, span.From, span.Until)
	}
	for _, at := range []time.Time{span.From, span.Until.Add(-1), w.instant(rng)} {
		if at.Before(span.From) || !at.Before(span.Until) {
			continue
		}
		*now = at
		second, err := c.Select(&other)
		if err != nil || &second.Chain[0][0] != &first.Chain[0][0] || second.Alias != first.Alias {
			t.Fatalf("%+v gets %q, and %+v, which is to get the same, %+v, %v", h, first.Alias, other, second, err)
		}
	}
}

// A list of the index is as long as there are kinds of keys and chains, not as
// there are entries.
func TestIndexDoesNotGrowWithTheStore(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(3, 4))
	longest := func(n int) (most int) {
		entries := make([]keymanager.Entry, n)
		for i := range entries {
			entries[i] = w.pool[rng.IntN(len(w.pool))]
			entries[i].Alias = fmt.Sprint(i)
		}
		tbl := mustNew(t, New, keymanager.Env{}, entries...).table(keymanager.RoleServer, w.start)
		for _, list := range tbl.exact {
			most = max(most, len(list))
		}
		return max(most, len(tbl.all))
	}
	if few, many := longest(len(w.pool)*10), longest(len(w.pool)*40); many > few {
		t.Errorf("the longest list holds %d of few entries and %d of many", few, many)
	}
}
