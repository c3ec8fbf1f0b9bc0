// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// sample is what the examples work with: a keystore with one entry for
// 127.0.0.1, good for servers and clients, and the root that it comes from.
type sample struct {
	dir                string
	keystore, password string // files
	root               *testca.Cert
	roots              *x509.CertPool
	server             *httptest.Server
}

func newSample() *sample {
	dir, err := os.MkdirTemp("", "framework-example-")
	if err != nil {
		log.Fatal(err)
	}
	tb := exampleTB{}
	root := testca.NewRoot(tb, testca.Spec{Name: "root"})
	leaf := root.Issue(tb, testca.Spec{
		Name: "sample", IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
		EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	s := &sample{
		dir: dir, keystore: filepath.Join(dir, "server.p12"), password: filepath.Join(dir, "server.pass"),
		root: root, roots: root.Pool(),
	}
	testca.WritePKCS12(tb, s.keystore, "changeit", testca.StoreEntry{Alias: "server", Cert: leaf})
	if err := os.WriteFile(s.password, []byte("changeit\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	return s
}

func (s *sample) remove() {
	if s.server != nil {
		s.server.Close()
	}
	os.RemoveAll(s.dir)
}

// config runs the default tier over the keystore.
func (s *sample) config() framework.Config {
	return framework.Config{
		Tiers:     []keymanager.Tier{pkixcached.Tier()},
		Keystores: []keymanager.Source{{Paths: []string{s.keystore}, Store: keymanager.PasswordRef{File: s.password}}},
	}
}

// trusting is the configuration of a client that trusts the root.
func (s *sample) trusting() *tls.Config { return &tls.Config{RootCAs: s.roots} }

// get returns what an HTTPS server answers.
func (s *sample) get(addr net.Addr) string {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.trusting(), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + addr.String())
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	return string(body)
}

// demanding starts a server that demands a certificate and returns its URL.
func (s *sample) demanding() string {
	own := s.root.Issue(exampleTB{}, testca.Spec{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	s.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: own.Chain(), PrivateKey: own.Key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: s.roots,
	}
	s.server.StartTLS()
	return s.server.URL
}

// exampleTB is as much of a testing.TB as an example has.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                      {}
func (exampleTB) Fatal(args ...any)            { log.Fatal(args...) }
func (exampleTB) Fatalf(f string, args ...any) { log.Fatalf(f, args...) }
