// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// failing is a way for a handshake to fail, and what is to be said of it.
type failing struct {
	name   string
	cfg    Config
	change func(*fake)
	client func(t *testing.T, s *running)
	reason Reason
	text   string // in the log; empty: any
}

// TestReasonOfFailedHandshake: Observer and log say why a handshake failed, where
// crypto/tls knows only that it did.
func TestReasonOfFailedHandshake(t *testing.T) {
	only := func(l Listener) Config { return Config{Listeners: []Listener{l}} }
	dials := func(change func(*tls.Config)) func(*testing.T, *running) {
		return func(t *testing.T, s *running) {
			if c, err := s.dial(t, change); err == nil {
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				_, err = io.ReadFull(c, make([]byte, 1)) // in TLS 1.3 the client is done before the server
				c.Close()
				if err == nil {
					t.Error("served")
				}
			}
		}
	}
	says := func(text string) func(*testing.T, *running) {
		return func(t *testing.T, s *running) {
			c, err := net.Dial("tcp", s.addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, text)
			if text != "\x16\x03\x01" {
				_, _ = io.Copy(io.Discard, c)
			}
		}
	}
	asks := Listener{ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "clients.p12"}}
	v12 := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	broken := errors.New("the process broke down")
	tests := []failing{
		{"no-credential", Config{}, func(f *fake) { f.certs = nil }, dials(nil), ReasonNoCredential, keymanager.ErrNoCredential.Error()},
		{"no-credential-tls12", Config{}, func(f *fake) { f.certs = nil }, dials(v12), ReasonNoCredential, keymanager.ErrNoCredential.Error()},
		{"nothing-common", only(Listener{Groups: []uint16{uint16(tls.CurveP384)}}), nil,
			dials(func(c *tls.Config) { v12(c); c.CurvePreferences = []tls.CurveID{tls.X25519} }), ReasonProtocol, errNothingCommon.Error()},
		{"unknown-name", only(Listener{UnknownSNI: UnknownSNIReject}), nil, dials(func(c *tls.Config) { c.ServerName = "b.test" }), ReasonUnknownName, errUnknownName.Error()},
		{"select", Config{}, func(f *fake) { f.selectErr = broken }, dials(nil), ReasonPlugin, broken.Error()},
		{"sign", Config{}, func(f *fake) { f.spoilSign = func([]byte, error) ([]byte, error) { return nil, broken } }, dials(nil),
			ReasonPlugin, `sign with the key of alias "P256": ` + broken.Error()},
		{"sign-tls12", Config{}, func(f *fake) { f.spoilSign = func([]byte, error) ([]byte, error) { return nil, broken } }, dials(v12),
			ReasonPlugin, `sign with the key of alias "P256": ` + broken.Error()},
		{"distrust", Config{}, nil, dials(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), ReasonClientAlert, "remote error: tls: bad certificate"},
		{"distrust-in-the-clear", Config{}, nil, distrustByOpenSSL, ReasonClientAlert, "remote error, not encrypted: tls: unknown certificate authority"},
		{"no-certificate", only(asks), nil, dials(nil), ReasonClientCertificate, ""},
		{"no-certificate-tls12", only(asks), nil, dials(v12), ReasonClientCertificate, ""},
		{"wrong-certificate", only(asks), nil, dials(func(c *tls.Config) {
			other := testca.NewRoot(t, testca.Spec{Name: "other"}).Issue(t, testca.Spec{Name: "client"})
			c.Certificates = []tls.Certificate{{Certificate: other.Chain(), PrivateKey: other.Key}}
		}), ReasonClientCertificate, ""},
		{"unknown-protocol", Config{}, nil, dials(func(c *tls.Config) { c.NextProtos = []string{"foo"} }), ReasonProtocol, ""},
		{"garbage", Config{}, nil, says("SSH-2.0-OpenSSH_9.2p1\r\n"), ReasonProtocol, ""},
		{"gone", Config{}, nil, says("\x16\x03\x01"), ReasonClosed, ""},
		{"slow", Config{Limits: Limits{HandshakeTimeout: 500 * time.Millisecond}}, nil, says("\x16\x03\x01\x02\x00"), ReasonTimeout, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t)
		})
	}
}

func (tt *failing) test(t *testing.T) {
	w := &witness{}
	core, logs := observerCore()
	tt.cfg.Observer, tt.cfg.Log = w.observer(), zap.New(core)
	if tt.cfg.Listeners == nil {
		tt.cfg.Listeners = []Listener{{}}
	}
	f, root := fakeOf(t, testca.P256)
	f.trusted = [][]byte{root.DER}
	if tt.change != nil {
		tt.change(f)
	}
	s := serveFake(t, tt.cfg, f, root)
	tt.client(t, s)
	if got := w.await(t, 0); got.Result != ConnectionFailed || got.In == 0 {
		t.Errorf("connection: %+v", got)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if len(w.handshakes) != 1 || w.handshakes[0].Result != HandshakeFailed || w.handshakes[0].Reason != tt.reason {
		t.Fatalf("handshakes: %+v, want reason %s", w.handshakes, tt.reason)
	}
	lines := logs.FilterMessage("handshake failed").All()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	m := lines[0].ContextMap()
	if m[logging.FieldReason] != tt.reason || tt.text != "" && m[logging.FieldError] != tt.text {
		t.Errorf("reason %q, error %q; want %q, %q", m[logging.FieldReason], m[logging.FieldError], tt.reason, tt.text)
	}
}

// distrustByOpenSSL sends its alert before it has changed keys.
func distrustByOpenSSL(t *testing.T, s *running) {
	tool(t, "openssl", "s_client", "-tls1_3", "-connect", s.addr(), "-verify_return_error")
}

func TestTailIsTheLastOfAll(t *testing.T) {
	alert := "\x15\x03\x03\x00\x02\x02\x30"
	for _, pieces := range [][]string{
		{alert}, {"x", alert}, {"x" + alert}, {alert[:3], alert[3:]}, {"abcdefghij", alert[:1], alert[1:6], alert[6:]},
	} {
		var l tail
		for _, p := range pieces {
			l.add([]byte(p))
		}
		if a, ok := l.alert(); !ok || a != 48 {
			t.Errorf("%q: %v, %t", pieces, a, ok)
		}
	}
	for _, text := range []string{"", alert[:6], alert + "x", "\x15\x03\x03\x00\x02\x01\x00"} {
		var l tail
		l.add([]byte(text))
		if a, ok := l.alert(); ok {
			t.Errorf("%q is taken for alert %v", text, a)
		}
	}
}
