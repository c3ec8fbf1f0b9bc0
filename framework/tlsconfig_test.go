// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/fips140"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func versions() []uint16 { return []uint16{tls.VersionTLS12, tls.VersionTLS13} }

// eachVersion runs f for TLS 1.2 and 1.3, with a client configuration of it.
func eachVersion(t *testing.T, root *testca.Cert, f func(t *testing.T, version uint16, client *tls.Config)) {
	t.Helper()
	for _, v := range versions() {
		t.Run(fmt.Sprintf("tls1.%d", v-tls.VersionTLS12+2), func(t *testing.T) {
			c := clientOf(root, "a.test")
			c.MinVersion, c.MaxVersion = v, v
			f(t, v, c)
		})
	}
}

// fakeOf returns a fake that serves a.test with keys of the types, and the root.
func fakeOf(t testing.TB, types ...testca.KeyType) (*fake, *testca.Cert) {
	t.Helper()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	f := &fake{}
	for _, kt := range types {
		f.certs = append(f.certs, root.Issue(t, testca.Spec{Name: string(kt), DNS: []string{"a.test"}, Key: kt}))
	}
	return f, root
}

func TestFullHandshakeCostsOneSelectAndOneSign(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	k, _ := f.keys(t)
	eachVersion(t, root, func(t *testing.T, version uint16, client *tls.Config) {
		selects, signs := f.selects.Load(), f.signs.Load()
		e := shake(t, client, k.TLSConfig()).ok(t)
		if n := f.selects.Load() - selects; n != 1 {
			t.Errorf("%d selects, want 1", n)
		}
		if n := f.signs.Load() - signs; n != 1 {
			t.Errorf("%d signs, want 1", n)
		}
		if want := (Served{Tier: "fake", Alias: "P256"}); !e.known || e.served != want {
			t.Errorf("served by %+v (%v), want %+v", e.served, e.known, want)
		}
	})
}

func TestResumptionCostsNoSign(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	k, _ := f.keys(t)
	eachVersion(t, root, func(t *testing.T, version uint16, client *tls.Config) {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		server := k.TLSConfig()
		shake(t, client, server).ok(t)
		selects, signs := f.selects.Load(), f.signs.Load()
		e := shake(t, client, server).ok(t)
		if !e.client.DidResume {
			t.Fatal("not resumed")
		}
		want := int64(0)
		if version == tls.VersionTLS12 {
			want = 1 // crypto/tls asks before it looks at the ticket
		}
		if n := f.selects.Load() - selects; n != want {
			t.Errorf("%d selects, want %d", n, want)
		}
		if n := f.signs.Load() - signs; n != 0 {
			t.Errorf("%d signs, want 0", n)
		}
	})
}

func TestCallerMayChangeConfig(t *testing.T) {
	f, root := fakeOf(t, testca.P256, testca.RSA2048)
	k, _ := f.keys(t)
	mine := root.Issue(t, testca.Spec{Name: "client", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	for name, change := range map[string]func(*tls.Config){
		"none":          func(*tls.Config) {},
		"max-version":   func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"min-version":   func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
		"cipher-suites": func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384} },
		"client-auth": func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, root.Pool()
		},
		"curves": func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} },
	} {
		t.Run(name, func(t *testing.T) {
			server := k.TLSConfig()
			change(server)
			server.NextProtos = append(server.NextProtos, "h2", "http/1.1")
			server = server.Clone() // as http.Server does
			client := clientOf(root, "a.test")
			client.NextProtos = []string{"h2"}
			client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			client.Certificates = []tls.Certificate{{Certificate: mine.Chain(), PrivateKey: mine.Key}}
			shake(t, client, server).ok(t)
			e := shake(t, client, server).ok(t)
			if !e.client.DidResume || e.client.NegotiatedProtocol != "h2" {
				t.Errorf("resumed %v, protocol %q", e.client.DidResume, e.client.NegotiatedProtocol)
			}
		})
	}
}

func TestAlerts(t *testing.T) {
	for name, tt := range map[string]struct {
		arrange func(*fake)
		alerts  map[uint16]string
	}{
		"no-credential": {
			func(f *fake) { f.certs = nil },
			map[uint16]string{tls.VersionTLS12: "handshake failure", tls.VersionTLS13: "handshake failure"},
		},
		"select-fails": {
			func(f *fake) { f.selectErr = errors.New("down") },
			map[uint16]string{tls.VersionTLS12: "internal error", tls.VersionTLS13: "internal error"},
		},
		"sign-fails": {
			func(f *fake) { f.spoilSign = func([]byte, error) ([]byte, error) { return nil, errors.New("down") } },
			map[uint16]string{tls.VersionTLS12: "handshake failure", tls.VersionTLS13: "internal error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, root := fakeOf(t, testca.P256)
			tt.arrange(f)
			k, _ := f.keys(t)
			eachVersion(t, root, func(t *testing.T, version uint16, client *tls.Config) {
				shake(t, client, k.TLSConfig()).alert(t, tt.alerts[version])
			})
		})
	}
}

// TestNothingInCommonAsksNobody holds that a stranger's hopeless hello doesn't
// reach the key process.
func TestNothingInCommonAsksNobody(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	k, _ := f.keys(t)
	client := clientOf(root, "a.test")
	client.MaxVersion, client.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	server := k.TLSConfig()
	server.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	shake(t, client, server).alert(t, "handshake failure")
	if n := f.selects.Load(); n != 0 {
		t.Errorf("%d selects, want 0", n)
	}
}

func TestOldVersionsAreNotSigned(t *testing.T) {
	if fips140.Enabled() {
		t.Skip("there are no old versions in FIPS mode")
	}
	f, root := fakeOf(t, testca.RSA2048)
	k, _ := f.keys(t)
	server, client := k.TLSConfig(), clientOf(root, "a.test")
	server.MinVersion, server.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	client.MinVersion, client.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	shake(t, client, server).alert(t, "handshake failure")
	if n := f.signs.Load(); n != 0 {
		t.Errorf("%d signs, want 0", n)
	}
}

func TestSignRequestNamesPurpose(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	k, _ := f.keys(t)
	want := map[uint16]keymanager.Purpose{tls.VersionTLS12: keymanager.ServerTLS12, tls.VersionTLS13: keymanager.ServerTLS13}
	eachVersion(t, root, func(t *testing.T, version uint16, client *tls.Config) {
		shake(t, client, k.TLSConfig()).ok(t)
		if got := f.request.Load(); got.Purpose != want[version] || got.Peer == "" {
			t.Errorf("purpose %v, peer %q", got.Purpose, got.Peer)
		}
	})
}

func TestCallsAreBoundedWithoutDeadline(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	var left time.Duration
	f.lookAtContext = func(ctx context.Context) {
		if d, ok := ctx.Deadline(); ok {
			left = time.Until(d)
		}
	}
	k, _ := f.keys(t)
	shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t)
	if left <= 0 || left > defaultSignTimeout {
		t.Errorf("a select may take %v, want at most %v", left, defaultSignTimeout)
	}
}

func TestFailureIsLoggedOnceASecond(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	f.selectErr = errors.New("down")
	k, logs := f.keys(t)
	for range 5 {
		shake(t, clientOf(root, "a.test"), k.TLSConfig())
	}
	lines := logs.FilterMessage(msgSelectFailed).All()
	if len(lines) == 0 || len(lines) > 2 {
		t.Fatalf("%d lines, want 1, or 2 on a slow machine", len(lines))
	}
	if got := fmt.Sprint(lines[0].ContextMap()["error"]); !strings.Contains(got, "down") {
		t.Errorf("error = %q", got)
	}
}

func BenchmarkHandshake(b *testing.B) {
	root := testca.NewRoot(b, testca.Spec{})
	f := &fake{certs: []*testca.Cert{root.Issue(b, testca.Spec{DNS: []string{"a.test"}})}}
	k, _ := f.keys(b)
	plain := &tls.Config{Certificates: []tls.Certificate{{Certificate: f.certs[0].Chain(), PrivateKey: f.certs[0].Key}}}
	for name, server := range map[string]*tls.Config{"keys": k.TLSConfig(), "plain": plain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				shake(b, clientOf(root, "a.test"), server).ok(b)
			}
		})
	}
}

// TestSlowSelectHoldsNobodyElse: no lock is held across a call to the key
// process, so that other handshakes and a reload go on beside one that waits.
func TestSlowSelectHoldsNobodyElse(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	entered, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	f.lookAtContext = func(context.Context) {
		if calls.Add(1) == 1 {
			close(entered)
			<-release
		}
	}
	k, _ := f.keys(t)
	var slow sync.WaitGroup
	slow.Go(func() { shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t) })
	<-entered
	for range 3 {
		shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t)
	}
	if err := k.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	close(release)
	slow.Wait()
}
