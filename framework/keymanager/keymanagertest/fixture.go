// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

const password = "changeit"

// ca issues the certificates of one test.
type ca struct {
	t       *testing.T
	ec, rsa *testca.Cert
}

func newCA(t *testing.T) *ca {
	t.Helper()
	return &ca{
		t:   t,
		ec:  testca.NewRoot(t, testca.Spec{Name: "EC root"}),
		rsa: testca.NewRoot(t, testca.Spec{Name: "RSA root", Key: testca.RSA2048}),
	}
}

// entry issues a leaf for an entry; an RSA one under the RSA root.
func (c *ca) entry(alias string, spec testca.Spec) testca.StoreEntry {
	c.t.Helper()
	issuer := c.ec
	if spec.Key == testca.RSA2048 {
		issuer = c.rsa
	}
	return testca.StoreEntry{Alias: alias, Cert: issuer.Issue(c.t, spec)}
}

func named(names ...string) testca.Spec { return testca.Spec{DNS: names} }

func expired(names ...string) testca.Spec {
	return testca.Spec{DNS: names, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour)}
}

// store is a keystore file and its password file.
type store struct{ path, passwordFile string }

func newStore(t *testing.T, entries ...testca.StoreEntry) *store {
	t.Helper()
	dir := t.TempDir()
	s := &store{filepath.Join(dir, "server.p12"), filepath.Join(dir, "pass")}
	if err := os.WriteFile(s.passwordFile, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, entries...)
	return s
}

// write replaces the file by rename, so that nobody reads half of it.
func (s *store) write(t testing.TB, entries ...testca.StoreEntry) {
	t.Helper()
	next := s.path + ".new"
	testca.WritePKCS12(t, next, password, entries...)
	if err := os.Rename(next, s.path); err != nil {
		t.Fatal(err)
	}
}

func (s *store) source() keymanager.Source {
	return keymanager.Source{Paths: []string{s.path}, Store: keymanager.PasswordRef{File: s.passwordFile}}
}

// hello returns what a client of today offers.
func hello(name string) *keymanager.Hello {
	return &keymanager.Hello{
		Role:       keymanager.RoleServer,
		Listener:   "127.0.0.1:8443",
		ServerName: name,
		Version:    tls.VersionTLS13,
		Auth:       keymanager.AuthRSA | keymanager.AuthECDSA,
		Schemes: []tls.SignatureScheme{
			tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256, tls.PKCS1WithSHA256,
			tls.ECDSAWithP384AndSHA384, tls.PSSWithSHA384, tls.PKCS1WithSHA384, tls.PSSWithSHA512, tls.PKCS1WithSHA512,
		},
		Groups: []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384},
		ALPN:   []string{"h2", "http/1.1"},
		ConnID: "conn", Peer: "192.0.2.1:50000",
	}
}

func demand(alias string, h *keymanager.Hello) *keymanager.Hello { h.Alias = alias; return h }

func offering(h *keymanager.Hello, s ...tls.SignatureScheme) *keymanager.Hello {
	h.Schemes = s
	return h
}

func tls12(h *keymanager.Hello, auth keymanager.Auth) *keymanager.Hello {
	h.Version, h.Auth = tls.VersionTLS12, auth
	return h
}

// certificateRequest returns what a backend asks of its clients.
func certificateRequest(issuers ...[]byte) *keymanager.Hello {
	h := hello("")
	h.Role, h.Groups, h.ALPN, h.Issuers = keymanager.RoleClient, nil, nil, issuers
	return h
}
