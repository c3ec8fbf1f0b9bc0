// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// jdkWorld is what questions to JDKs are generated from. The certificates'
// dates, names and usages vary by a seed, so that a question means the same in
// each run.
type jdkWorld struct {
	rng  *rand.Rand
	cas  []worldCA
	pool []testca.StoreEntry
}

// worldCA issues leaves. Java makes chains of all certificates in a file: a CA's
// leaves come with its certificate always, or never.
type worldCA struct {
	*testca.Cert
	withRoot bool
	algs     []x509.SignatureAlgorithm // that it signs by; none: its own
}

func newJDKWorld(t *testing.T, seed uint64) *jdkWorld {
	t.Helper()
	w := &jdkWorld{rng: rand.New(rand.NewPCG(seed, 0))}
	root := func(name string, key testca.KeyType, alg x509.SignatureAlgorithm) *testca.Cert {
		return testca.NewRoot(t, testca.Spec{Name: name, Key: key, SigAlg: alg})
	}
	rsa := root("RSA CA", testca.RSA2048, 0)
	w.cas = []worldCA{
		{root("EC CA", testca.P256, 0), false, nil},
		{root("EC CA", testca.P256, 0), false, nil},
		{root("EC CA on P-384", testca.P384, 0), false, []x509.SignatureAlgorithm{x509.ECDSAWithSHA256, x509.ECDSAWithSHA384}},
		{rsa, false, []x509.SignatureAlgorithm{x509.SHA256WithRSA, x509.SHA256WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS}},
		{rsa.Issue(t, testca.Spec{Name: "EC intermediate", IsCA: true}), false, nil},
		{root("Ed CA", testca.Ed25519, 0), false, nil},
		{root("RSA root in the chain", testca.RSA2048, x509.SHA512WithRSA), true, []x509.SignatureAlgorithm{x509.SHA256WithRSA}},
		{root("EC root in the chain", testca.P384, x509.ECDSAWithSHA512), true, []x509.SignatureAlgorithm{x509.ECDSAWithSHA256}},
		{root("RSA root with SHA-1 in the chain", testca.RSA2048, x509.SHA1WithRSA), true, []x509.SignatureAlgorithm{x509.SHA256WithRSA}},
	}
	for range 240 {
		w.pool = append(w.pool, w.leaf(t))
	}
	return w
}

func oneOf[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

func (w *jdkWorld) leaf(t *testing.T) testca.StoreEntry {
	t.Helper()
	const ds, ke, ka = x509.KeyUsageDigitalSignature, x509.KeyUsageKeyEncipherment, x509.KeyUsageKeyAgreement
	const server, client = x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	s := testca.Spec{
		Key:      oneOf(w.rng, testca.P256, testca.P256, testca.P256, testca.P384, testca.P521, testca.RSA2048, testca.RSA2048, testca.RSA2048, testca.RSA1024, testca.Ed25519),
		KeyUsage: oneOf(w.rng, ds, ds, ds|ke, ds|ka, ds|ka, ds|ka, ke, ka, x509.KeyUsageEncipherOnly),
		EKU: oneOf(w.rng, []x509.ExtKeyUsage{server}, []x509.ExtKeyUsage{server, client}, []x509.ExtKeyUsage{server, client},
			[]x509.ExtKeyUsage{client}, []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping},
			[]x509.ExtKeyUsage{x509.ExtKeyUsageMicrosoftServerGatedCrypto}),
		NoKeyUsage: w.rng.IntN(4) == 0, NoEKU: w.rng.IntN(4) == 0,
		Name: oneOf(w.rng, "leaf", "cn.w.test"),
		DNS: oneOf(w.rng, nil, []string{"a.w.test"}, []string{"b.w.test", "x.test"}, []string{"*.w.test"}, []string{"a.w.test", "*.w.test"},
			[]string{"a*.w.test"}, []string{"a.*.test"}, []string{"*.test"}, []string{"a_b.w.test"}, []string{"A.W.test"}),
	}
	switch w.rng.IntN(6) {
	case 0:
		s.NotBefore, s.NotAfter = days(-20), days(-10)
	case 1:
		s.NotBefore, s.NotAfter = days(10), days(20)
	}
	if w.rng.IntN(12) == 0 {
		return testca.StoreEntry{Cert: testca.SelfSigned(t, s)}
	}
	ca := oneOf(w.rng, w.cas...)
	if len(ca.algs) > 0 {
		s.SigAlg = oneOf(w.rng, ca.algs...)
	}
	e := testca.StoreEntry{Cert: ca.Issue(t, s)}
	if ca.withRoot {
		e.Chain = append(e.Cert.Chain(), ca.DER)
	}
	return e
}

// schemeLists are few, since an old JDK needs a process for each.
func schemeLists() [][]tls.SignatureScheme {
	const p256, p384, p521, ed = tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512, tls.Ed25519
	const pss256, pss384, pss512 = tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512
	const rsa256, rsa384, rsa512 = tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512
	return [][]tls.SignatureScheme{
		{p256, p384, p521, ed, pss256, pss384, pss512, rsa256, rsa384, rsa512},
		{pss256, rsa256, p256, pss384, rsa512, ed, p384},
		{p256, rsa256},
		{ed, p521, rsa512, rsa256, pss256},
		{pss256, pss384},
		{rsa256, p384, p256, pss512},
	}
}

// questions makes n of them.
func (w *jdkWorld) questions(n int) (out []*question) {
	lists := schemeLists()
	for i := range n {
		q := &question{id: fmt.Sprintf("q%03d", i), hello: &keymanager.Hello{
			Role:    oneOf(w.rng, keymanager.RoleServer, keymanager.RoleServer, keymanager.RoleClient),
			Version: oneOf[uint16](w.rng, tls.VersionTLS13, tls.VersionTLS13, tls.VersionTLS12),
			Auth:    keymanager.AuthRSA | keymanager.AuthECDSA,
			Schemes: lists[i%len(lists)],
			Groups:  []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521},
		}}
		if q.hello.Role == keymanager.RoleServer {
			q.hello.ServerName = oneOf(w.rng, "", "a.w.test", "a.w.test", "b.w.test", "ab.w.test", "cn.w.test", "none.test")
			if q.hello.Version == tls.VersionTLS12 {
				q.hello.Auth = oneOf(w.rng, q.hello.Auth, q.hello.Auth, keymanager.AuthRSA, keymanager.AuthECDSA)
			}
		} else if w.rng.IntN(2) == 0 {
			w.nameAuthorities(q)
		}
		for range oneOf(w.rng, 1, 1, 1, 2, 3) {
			q.builders = append(q.builders, w.builder())
		}
		out = append(out, q)
	}
	return out
}

func (w *jdkWorld) nameAuthorities(q *question) {
	for range 1 + w.rng.IntN(3) {
		q.authorities = append(q.authorities, oneOf(w.rng, w.cas...).Cert)
	}
	for _, ca := range q.authorities {
		q.hello.Issuers = append(q.hello.Issuers, ca.Cert.RawSubject)
	}
}

func (w *jdkWorld) builder() []testca.StoreEntry {
	out := make([]testca.StoreEntry, 1+w.rng.IntN(5))
	for i, n := range w.rng.Perm(len(w.pool))[:len(out)] {
		out[i] = w.pool[n]
		out[i].Alias = fmt.Sprintf("%c%d", 'a'+w.rng.IntN(26), i)
	}
	return out
}
