// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tlsd/tlsd/internal/testca"
)

// as returns a configuration of a client with a certificate.
func (s store) as(client *testca.Cert) *tls.Config {
	conf := clientOf(s)
	if client != nil {
		conf.Certificates = []tls.Certificate{{Certificate: client.Chain(), PrivateKey: client.Key}}
	}
	return conf
}

// letIn says whether a client gets an answer.
func (d *daemon) letIn(conf *tls.Config) error {
	c, err := d.handshake(conf)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "hello\n")
	_, err = io.ReadFull(c, make([]byte, 6))
	return err
}

// R11: a second CA is appended in place; later the file is empty, then away, then
// overwritten through a mapping, of which no event tells.
func TestFaultR11_ClientCAFileGrows(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	caA, caB := testca.NewRoot(t, testca.Spec{Name: "A"}), testca.NewRoot(t, testca.Spec{Name: "B"})
	alice, bob := r.s.as(caA.Issue(t, testca.Spec{Name: "alice", NoEKU: true})), r.s.as(caB.Issue(t, testca.Spec{Name: "bob", NoEKU: true}))
	path := r.put("clients.pem", caA.CertPEM())
	r.configure(r.listener(r.addr, "client_auth: require", "client_ca: "+path), "reload_poll: 1s")
	r.start()
	if err := r.d.letIn(alice); err != nil {
		t.Fatalf("%v\n%s", err, r.d.log)
	}
	if r.d.letIn(bob) == nil {
		t.Fatal("a stranger is let in")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(caB.CertPEM()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r.until("bob is let in", func() bool { return r.d.letIn(bob) == nil })
	bothIn := func(when string) {
		t.Helper()
		for _, who := range []*tls.Config{alice, bob} {
			if err := r.d.letIn(who); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	bothIn("two CAs")
	const complaint = `"trust stores and revocation lists: those in use stay"`
	for i, spoil := range []func() error{
		func() error { return os.Truncate(path, 0) },
		func() error { return os.Remove(path) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		r.until("it is complained about", func() bool { return r.d.count(complaint) == i+1 })
		time.Sleep(1500 * time.Millisecond) // more looks, and no more lines
		if n := r.d.count(complaint); n != i+1 {
			t.Errorf("%d lines about %d files\n%s", n, i+1, r.d.log)
		}
		bothIn("a file that is no trust store")
	}
	// B alone, of the size of A and B.
	both := append(caA.CertPEM(), caB.CertPEM()...)
	r.put("clients.pem", both)
	silently(t, path, append(caB.CertPEM(), bytes.Repeat([]byte{'\n'}, len(both)-len(caB.CertPEM()))...))
	r.until("alice is a stranger", func() bool { return r.d.letIn(alice) != nil })
	if err := r.d.letIn(bob); err != nil {
		t.Error(err)
	}
}

// silently overwrites a file so that no event tells of it.
func silently(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := unix.Mmap(int(f.Fd()), 0, len(content), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	copy(m, content)
	if err := unix.Msync(m, unix.MS_SYNC); err != nil {
		t.Fatal(err)
	}
}

// A client is revoked while tlsd runs, and openssl is told so; the list is damaged,
// is unsigned, and goes out of date.
func TestFaultRevocationLists(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	ca := testca.NewRoot(t, testca.Spec{Name: "A"})
	mallory, alice := ca.Issue(t, testca.Spec{Name: "mallory", NoEKU: true}), ca.Issue(t, testca.Spec{Name: "alice", NoEKU: true})
	list := r.put("clients.crl", ca.CRL(t, testca.CRL{}))
	metrics := freeAddr(t)
	r.configure("  - {"+strings.Join([]string{
		"listen: " + r.addr, "client_auth: optional", "client_ca: " + r.put("clients.pem", ca.CertPEM()), "client_crl: " + list,
	}, ", ")+"}\n", "reload_poll: 1s", "metrics: {listen: "+metrics+"}")
	r.start()
	with := func(c *testca.Cert) []string {
		cert, key := filepath.Join(r.dir, c.Cert.Subject.CommonName+".crt"), filepath.Join(r.dir, c.Cert.Subject.CommonName+".key")
		testca.WritePEM(t, cert, key, c)
		return []string{"-cert", cert, "-key", key}
	}
	evil, good := with(mallory), with(alice)
	for _, c := range [][]string{evil, good} {
		if got := request(t, r.d, "-tls1_3", c...); got != "ok" {
			t.Fatalf("%s\n%s", got, r.d.log)
		}
	}
	revoking := testca.CRLPEM(ca.CRL(t, testca.CRL{Number: 2, Revoked: []*testca.Cert{mallory}}))
	r.put("clients.crl", revoking)
	judge := func(when string, wantEvil, wantGood string) {
		t.Helper()
		for _, version := range []string{"-tls1_2", "-tls1_3"} {
			if got := request(t, r.d, version, evil...); got != wantEvil {
				t.Errorf("%s: the revoked client: %s, want %s", when, got, wantEvil)
			}
			if got := request(t, r.d, version, good...); got != wantGood {
				t.Errorf("%s: the other client: %s, want %s", when, got, wantGood)
			}
			if got := request(t, r.d, version); got != "ok" {
				t.Errorf("%s: a client without a certificate: %s", when, got)
			}
		}
	}
	r.until("the client is refused", func() bool { return request(t, r.d, "-tls1_3", evil...) == "alert 42" })
	judge("revoked", "alert 42", "ok")
	r.d.awaitLog(`"reason":"revoked"`)
	r.until("a metric counts it", func() bool { return strings.Contains(page(t, "http://"+metrics+"/metrics"), `reason="revoked"`) })
	const complaint = `"trust stores and revocation lists: those in use stay"`
	other := testca.NewRoot(t, testca.Spec{Name: "A"})
	for i, bad := range [][]byte{revoking[:len(revoking)-50], other.CRL(t, testca.CRL{})} {
		r.put("clients.crl", bad)
		r.until("it is complained about", func() bool { return r.d.count(complaint) == i+1 })
		judge("a bad list", "alert 42", "ok")
	}
	r.put("clients.crl", ca.CRL(t, testca.CRL{Number: 3, NextUpdate: time.Now().Add(2 * time.Second)}))
	r.d.awaitLog("goes out of date within a day")
	r.d.awaitLog("is out of date: clients of its issuer are refused")
	judge("out of date", "alert 42", "alert 42")
	r.d.awaitLog(`"reason":"crl_expired"`)
}

func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// M04: a ticket of one listener is worth nothing at another with other rules.
func TestFaultM04_TicketOfAnotherListener(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	caA, caB := testca.NewRoot(t, testca.Spec{Name: "A"}), testca.NewRoot(t, testca.Spec{Name: "B"})
	atB, atC := freeAddr(t), freeAddr(t)
	require := func(ca *testca.Cert) []string {
		return []string{"client_auth: require", "client_ca: " + r.put(ca.Cert.Subject.CommonName+".pem", ca.CertPEM())}
	}
	r.configure(r.listener(r.addr, require(caA)...) + r.listener(atB, require(caB)...) + r.listener(atC))
	r.start()
	alice := caA.Issue(t, testca.Spec{Name: "alice", NoEKU: true})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, tt := range []struct{ from, to, want string }{
			{r.addr, r.addr, "resumed"}, {r.addr, atB, "refused"}, {r.addr, atC, "full"},
			{atC, atC, "resumed"}, {atC, r.addr, "full"}, {atC, atB, "refused"},
		} {
			conf := r.s.as(alice)
			conf.MinVersion, conf.MaxVersion = version, version
			conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &conf.Certificates[0], nil }
			if _, err := session(tt.from, conf); err != nil {
				t.Fatalf("%v\n%s", err, r.d.log)
			}
			got, err := session(tt.to, conf)
			if err != nil {
				got = "refused"
			}
			if got != tt.want {
				t.Errorf("%s: %s at %s is %s (%v), want %s", tls.VersionName(version), tt.from, tt.to, got, err, tt.want)
			}
		}
	}
}

// session says whether a connection was a resumed one.
func session(addr string, conf *tls.Config) (string, error) {
	c, err := tls.Dial("tcp", addr, conf)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "hello\n")
	if _, err := io.ReadFull(c, make([]byte, 6)); err != nil {
		return "", err
	}
	if c.ConnectionState().DidResume {
		return "resumed", nil
	}
	return "full", nil
}

// M05: who is let in where certificates are optional and where they are required.
func TestFaultM05_ClientCertificates(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	ca := testca.NewRoot(t, testca.Spec{Name: "A"})
	required := freeAddr(t)
	path := r.put("clients.pem", ca.CertPEM())
	r.configure(r.listener(r.addr, "client_auth: optional", "client_ca: "+path) + r.listener(required, "client_auth: require", "client_ca: "+path))
	r.start()
	ended := time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		client                   *testca.Cert
		whereOptional, whereNeed bool
	}{
		"no EKU":      {ca.Issue(t, testca.Spec{Name: "x", NoEKU: true}), true, true},
		"clientAuth":  {ca.Issue(t, testca.Spec{Name: "x", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}), true, true},
		"serverAuth":  {ca.Issue(t, testca.Spec{Name: "x"}), false, false},
		"expired":     {ca.Issue(t, testca.Spec{Name: "x", NoEKU: true, NotBefore: ended.Add(-time.Hour), NotAfter: ended}), false, false},
		"self-signed": {testca.SelfSigned(t, testca.Spec{Name: "x", NoEKU: true}), false, false},
		"none":        {nil, true, false},
	} {
		for addr, want := range map[string]bool{r.addr: tt.whereOptional, required: tt.whereNeed} {
			conf := r.s.as(tt.client)
			if tt.client != nil { // whatever the server says that it takes
				conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &conf.Certificates[0], nil }
			}
			_, err := session(addr, conf)
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "remote error: tls: ") {
				t.Errorf("%s (required: %v): %v, let in is to be %v", name, addr == required, err, want)
			}
		}
	}
}
