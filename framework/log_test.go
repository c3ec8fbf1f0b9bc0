// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// TestConnectionIsLogged: one line says all of a connection, at debug unless it
// failed: then at info, where there was none within a second. A probe is neither.
func TestConnectionIsLogged(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	s := serve(t, Config{Log: zap.New(core), Listeners: []Listener{{
		Backend: echo(t), ClientAuth: ClientAuthOptional, ClientCA: TrustStore{Path: "clients.p12"},
	}}})
	mine := s.root.Issue(t, testca.Spec{Name: "client", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	s.echoed(t, func(c *tls.Config) {
		c.Certificates = []tls.Certificate{{Certificate: mine.Chain(), PrivateKey: mine.Key}}
	})
	for range 3 {
		if _, err := s.dial(t, func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }); err == nil {
			t.Error("an unknown root was trusted")
		}
	}
	probe, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	probe.Close()
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	expected := map[string]struct {
		lines int
		level zapcore.Level
	}{"connection": {1, zapcore.DebugLevel}, "handshake failed": {3, zapcore.InfoLevel}}
	for msg, want := range map[string]map[string]any{
		"connection": {
			logging.FieldTier: "fake", logging.FieldAlias: "P256", logging.FieldServerName: "a.test",
			"version": "TLS 1.3", "resumed": false, "client_subject": "CN=client", logging.FieldListener: "127.0.0.1:0",
		},
		"handshake failed": {"error": "remote error: tls: bad certificate", logging.FieldAlias: "P256"},
	} {
		lines := logs.FilterMessage(msg).All()
		if n, at := expected[msg].lines, expected[msg].level; len(lines) != n || lines[0].Level != at {
			t.Errorf("%q: %d lines, want %d, the first at %v", msg, len(lines), n, at)
			continue
		}
		for field, value := range want {
			if got := lines[0].ContextMap()[field]; got != value {
				t.Errorf("%q: %s = %v, want %v", msg, field, got, value)
			}
		}
	}
}

// TestPanicOfHandlerIsAnError, while what clients do wrong is not.
func TestPanicOfHandlerIsAnError(t *testing.T) {
	core, logs := observerCore()
	s := serve(t, Config{Log: zap.New(core), Listeners: []Listener{{}}})
	s.now.Load().listeners[0].route.Load().handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	for _, h2 := range []bool{false, true} {
		if resp, err := s.httpClient(t, h2).Get("https://" + s.addr()); err == nil {
			resp.Body.Close()
			t.Error("a broken handler answered")
		}
	}
	lines := func() int { return logs.FilterLevelExact(zapcore.ErrorLevel).FilterMessage("http server").Len() }
	for end := time.Now().Add(10 * time.Second); lines() < 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // HTTP/2 ends the stream before it complains
	}
	if n := lines(); n != 2 {
		t.Errorf("%d error lines, want 2", n)
	}
}
