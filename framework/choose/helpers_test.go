// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func entry(alias string, c *testca.Cert) keymanager.Entry {
	return keymanager.Entry{
		Alias: alias, Kind: keymanager.KindKey, Chain: c.Chain(),
		Key: keymanager.FromSigner(c.Key), Usable: true,
	}
}

func inBuilder(n int, e keymanager.Entry) keymanager.Entry { e.Builder = n; return e }

func withRoot(e keymanager.Entry, root *testca.Cert) keymanager.Entry {
	e.Chain = append(slices.Clone(e.Chain), root.DER)
	return e
}

// modern returns what a browser of today offers, for TLS 1.3.
func modern(name string) *keymanager.Hello {
	return &keymanager.Hello{
		Role:       keymanager.RoleServer,
		ServerName: name,
		Version:    tls.VersionTLS13,
		Auth:       keymanager.AuthRSA | keymanager.AuthECDSA,
		Schemes: []tls.SignatureScheme{
			tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP384AndSHA384,
			tls.PSSWithSHA384, tls.PKCS1WithSHA384, tls.PSSWithSHA512, tls.PKCS1WithSHA512,
		},
		Groups: []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384},
	}
}

func schemes(h *keymanager.Hello, s ...tls.SignatureScheme) *keymanager.Hello {
	h.Schemes = s
	return h
}

func tls12(h *keymanager.Hello, auth keymanager.Auth) *keymanager.Hello {
	h.Version, h.Auth = tls.VersionTLS12, auth
	return h
}

func demand(h *keymanager.Hello, alias string) *keymanager.Hello { h.Alias = alias; return h }

// client returns a server's request for a client certificate.
func client(issuers ...[]byte) *keymanager.Hello {
	h := modern("")
	h.Role, h.Auth, h.Groups, h.Issuers = keymanager.RoleClient, 0, nil, issuers
	return h
}

// maker is New or NewUnchecked.
type maker func(uint64, []keymanager.Entry, keymanager.Env) (*Chooser, error)

func newAsJDK(generation uint64, entries []keymanager.Entry, env keymanager.Env) (*Chooser, error) {
	env.Options.JDKCompat = true
	return New(generation, entries, env)
}

func mustNew(t testing.TB, mk maker, env keymanager.Env, entries ...keymanager.Entry) *Chooser {
	t.Helper()
	c, err := mk(7, entries, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pick returns the alias that is chosen, empty for ErrNoCredential.
func pick(t testing.TB, c *Chooser, h *keymanager.Hello) string {
	t.Helper()
	cred, err := c.Select(h)
	if errors.Is(err, keymanager.ErrNoCredential) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return cred.Alias
}

func days(n int) time.Time { return time.Now().Add(time.Duration(n) * 24 * time.Hour) }
