// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// demanding returns a server configuration that wants a certificate of root's.
func demanding(t testing.TB, root *testca.Cert) *tls.Config {
	t.Helper()
	c := root.Issue(t, testca.Spec{DNS: []string{"a.test"}})
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: c.Chain(), PrivateKey: c.Key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: root.Pool(),
	}
}

func TestClientCertificateIsChosenAndSignedFor(t *testing.T) {
	for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519} {
		t.Run(string(kt), func(t *testing.T) {
			root := testca.NewRoot(t, testca.Spec{})
			mine := root.Issue(t, testca.Spec{Name: string(kt), Key: kt, EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			f := &fake{certs: []*testca.Cert{mine}}
			k, _ := f.keys(t)
			want := map[uint16]keymanager.Purpose{tls.VersionTLS12: keymanager.ClientTLS12, tls.VersionTLS13: keymanager.ClientTLS13}
			eachVersion(t, root, func(t *testing.T, version uint16, client *tls.Config) {
				own := k.ClientConfig()
				own.RootCAs, own.ServerName, own.MaxVersion = client.RootCAs, client.ServerName, version
				e := shake(t, own, demanding(t, root)).ok(t)
				if got := e.server.PeerCertificates[0].Subject.CommonName; got != string(kt) {
					t.Errorf("the server saw %q", got)
				}
				h := f.hello.Load()
				if h.Role != keymanager.RoleClient || h.Version != version || len(h.Issuers) != 1 {
					t.Errorf("hello = %+v", h)
				}
				if got := f.request.Load().Purpose; got != want[version] {
					t.Errorf("purpose %v, want %v", got, want[version])
				}
			})
		})
	}
}

// TestClientHandshakeIsNotServed: a handler that goes on as a client, with the
// context of its request, still knows what the request's connection was served
// with.
func TestClientHandshakeIsNotServed(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	k, _ := f.keys(t)
	b := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.TLS = demanding(t, root)
	b.TLS.ClientAuth = tls.RequireAnyClientCert
	b.StartTLS()
	defer b.Close()
	own := k.ClientConfig()
	own.RootCAs, own.ServerName = root.Pool(), "a.test"
	transport := &http.Transport{TLSClientConfig: own}
	defer transport.CloseIdleConnections()
	ctx := WithServed(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got, ok := ServedBy(ctx); ok || f.signs.Load() != 1 {
		t.Errorf("served by %+v, %d signatures", got, f.signs.Load())
	}
}

func TestNoClientCertificateFits(t *testing.T) {
	f, root := fakeOf(t)
	k, _ := f.keys(t)
	c := k.ClientConfig()
	c.RootCAs, c.ServerName = root.Pool(), "a.test"
	shake(t, c, demanding(t, root)).alert(t, "certificate required")
	server := demanding(t, root)
	server.ClientAuth = tls.VerifyClientCertIfGiven
	shake(t, c, server).ok(t)
}

// TestBackendGetsClientCertificate: the keys serve towards the backend too.
func TestBackendGetsClientCertificate(t *testing.T) {
	f, root := fakeOf(t)
	f.certs = []*testca.Cert{root.Issue(t, testca.Spec{
		Name: "front", DNS: []string{"a.test"}, EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})}
	f.trusted = [][]byte{root.DER}
	b := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	b.TLS = demanding(t, root)
	b.StartTLS()
	defer b.Close()
	s := serveFake(t, Config{Listeners: []Listener{{
		Backend:    b.URL,
		BackendTLS: BackendTLS{CA: TrustStore{Path: "ca.p12"}, Name: "a.test", ClientCertificate: true},
	}}}, f, root)
	resp, err := s.httpClient(t, true).Get("https://" + s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got := make([]byte, 5)
	if n, _ := resp.Body.Read(got); string(got[:n]) != "front" {
		t.Errorf("status %d, body %q", resp.StatusCode, got[:n])
	}
	if h := f.hello.Load(); h.Listener != b.URL {
		t.Errorf("the key manager heard of %q, want the backend %q", h.Listener, b.URL)
	}
}
