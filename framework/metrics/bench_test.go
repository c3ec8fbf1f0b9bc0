// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// BenchmarkCounting is what is counted of one full handshake and its connection.
func BenchmarkCounting(b *testing.B) {
	o := New("dev").Observer()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			const l = "0.0.0.0:443"
			o.Opened(l)
			o.Selection(true, nil)
			o.Signature(framework.SignatureEvent{Alias: "web", Duration: time.Millisecond})
			o.Handshake(framework.HandshakeEvent{Listener: l, Result: "ok", Duration: time.Millisecond})
			o.Closed(framework.ConnectionEvent{Listener: l, In: 1, Out: 1, Result: "closed"})
		}
	})
}

// BenchmarkObservedHandshake makes full handshakes with two servers in turn, one
// that is observed and one that isn't, and reports the ratio of their medians. The
// key manager is in this process, so that nothing but counting is between them.
func BenchmarkObservedHandshake(b *testing.B) {
	ca := testca.NewRoot(b, testca.Spec{Name: "root"})
	store := filepath.Join(b.TempDir(), "server.p12")
	testca.WritePKCS12(b, store, "changeit", testca.StoreEntry{Alias: "web", Cert: ca.Issue(b, testca.Spec{Name: "w", DNS: []string{"w.test"}})})
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "w.test"}
	off := benchServer(b, store, framework.Observer{})
	on := benchServer(b, store, New("dev").Observer())
	var took [2][]time.Duration
	for b.Loop() {
		for i, addr := range []string{off, on} {
			began := time.Now()
			c, err := tls.Dial("tcp", addr, client)
			if err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
			_ = c.Close()
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	without, with := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(float64(with)/float64(without), "on:off")
}

// benchServer runs a server and returns its address.
func benchServer(b *testing.B, store string, o framework.Observer) string {
	b.Helper()
	password := keymanager.Secret("changeit")
	server, err := framework.NewServer(b.Context(), framework.Config{
		Tiers: []keymanager.Tier{pkixcached.Tier()}, InProcess: true,
		Keystores: []keymanager.Source{{Paths: []string{store}, Store: keymanager.PasswordRef{Value: &password}}},
		Listeners: []framework.Listener{{Listen: "127.0.0.1:0"}},
		Observer:  o,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, end := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Run(ctx)
	}()
	b.Cleanup(func() {
		end()
		<-done
	})
	<-server.Serving()
	return server.Addrs()[0].String()
}
