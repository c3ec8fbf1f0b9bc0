// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// fake is a key manager that counts and, when told to, lies: what no real tier
// can be made to do. It serves the first of its certificates that fits, under
// any alias that is demanded.
type fake struct {
	certs         []*testca.Cert
	selects       atomic.Int64
	signs         atomic.Int64
	generation    atomic.Uint64
	hello         atomic.Pointer[keymanager.Hello]
	request       atomic.Pointer[keymanager.SignRequest]
	spoil         func(*keymanager.Credential)        // an answer, before it is given
	spoilSign     func([]byte, error) ([]byte, error) // a signature
	selectErr     error
	done          chan struct{}
	err           error
	trusted       [][]byte
	trustErr      atomic.Pointer[error] // read while a Server runs
	reloadErr     error
	reloads       atomic.Int64
	lookAtContext func(context.Context)
	reuse         keymanager.Reuse
	change        keymanager.Change // told as soon as it is watched
	deaf          atomic.Bool       // not watched
}

var _ plugin.Manager = (*fake)(nil)

func (f *fake) Select(ctx context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	f.selects.Add(1)
	f.hello.Store(h)
	if f.lookAtContext != nil {
		f.lookAtContext(ctx)
	}
	if f.selectErr != nil {
		return nil, f.selectErr
	}
	for _, c := range f.certs {
		for _, s := range h.Schemes {
			need := keymanager.AuthECDSA
			if c.Cert.PublicKeyAlgorithm == x509.RSA {
				need = keymanager.AuthRSA
			}
			if !keymanager.SchemeFits(s, c.Cert.PublicKey, h.Version) || h.Auth&need == 0 {
				continue
			}
			cred := &keymanager.Credential{
				Alias: cmp.Or(h.Alias, c.Cert.Subject.CommonName), Generation: f.generation.Load(),
				Chain: c.Chain(), Leaf: c.Cert, Key: fakeKey{keymanager.FromSigner(c.Key), f}, Reuse: f.reuse,
			}
			if f.spoil != nil {
				f.spoil(cred)
			}
			return cred, nil
		}
	}
	return nil, keymanager.ErrNoCredential
}

type fakeKey struct {
	keymanager.Key
	fake *fake
}

func (k fakeKey) Sign(ctx context.Context, r *keymanager.SignRequest) ([]byte, error) {
	k.fake.signs.Add(1)
	k.fake.request.Store(r)
	sig, err := k.Key.Sign(ctx, r)
	if k.fake.spoilSign != nil {
		return k.fake.spoilSign(sig, err)
	}
	return sig, err
}

func (f *fake) List(context.Context) ([]keymanager.Entry, error) {
	return nil, plugin.ErrUnsupported
}

func (f *fake) Explain(context.Context, *keymanager.Hello) ([]keymanager.Verdict, error) {
	return nil, plugin.ErrUnsupported
}

func (f *fake) Reload(context.Context) error {
	f.reloads.Add(1)
	return f.reloadErr
}

func (f *fake) Watch(ctx context.Context, changed func(keymanager.Change)) error {
	changed(f.change)
	<-ctx.Done()
	return nil
}

func (f *fake) Describe() plugin.Description { return plugin.Description{Name: "fake"} }

func (f *fake) Status() plugin.Status { return plugin.Status{Up: true, Watched: !f.deaf.Load()} }

func (f *fake) Generation() uint64 { return f.generation.Load() }

func (f *fake) Trust(context.Context, string, string, keymanager.PasswordRef) ([][]byte, []string, error) {
	if err := f.trustErr.Load(); err != nil {
		return nil, nil, *err
	}
	return f.trusted, nil, nil
}

func (f *fake) SetLogLevels(context.Context, map[string]string) error { return nil }
func (f *fake) Done() <-chan struct{}                                 { return f.done }
func (f *fake) Err() error                                            { return f.err }
func (f *fake) Close() error                                          { return nil }

// keys returns Keys over f, and what they log.
func (f *fake) keys(t testing.TB) (*Keys, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observerCore()
	k := newKeys(f, "fake", &Config{Log: zap.New(core)})
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, logs
}

func observerCore() (zapcore.Core, *observer.ObservedLogs) { return observer.New(zapcore.InfoLevel) }

// ends are the two ends of one finished handshake.
type ends struct {
	client, server tls.ConnectionState
	clientErr      error
	serverErr      error
	served         Served
	known          bool // whether served is
}

// shake does one handshake between client and server over loopback TCP. One
// byte from the server follows it, so that a TLS 1.3 client sees tickets and
// alerts.
func shake(t testing.TB, client, server *tls.Config) ends {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var e ends
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		raw, err := ln.Accept()
		if err != nil {
			e.serverErr = err
			return
		}
		defer raw.Close()
		ctx := WithServed(context.Background())
		c := tls.Server(raw, server)
		if e.serverErr = c.HandshakeContext(ctx); e.serverErr == nil {
			_, e.serverErr = c.Write([]byte{1})
			_ = c.CloseWrite()
		}
		e.server = c.ConnectionState()
		e.served, e.known = ServedBy(ctx)
	}()
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	c := tls.Client(raw, client)
	if e.clientErr = c.Handshake(); e.clientErr == nil {
		_, e.clientErr = io.ReadFull(c, make([]byte, 1))
	}
	e.client = c.ConnectionState()
	raw.Close()
	<-finished
	return e
}

// ok fails the test if the handshake failed.
func (e ends) ok(t testing.TB) ends {
	t.Helper()
	if err := errors.Join(e.clientErr, e.serverErr); err != nil {
		t.Fatalf("handshake: %v", err)
	}
	return e
}

// alert fails the test unless the client got the alert of that name.
func (e ends) alert(t testing.TB, want string) {
	t.Helper()
	if e.clientErr == nil || e.clientErr.Error() != "remote error: tls: "+want {
		t.Fatalf("client's error = %v, want alert %q (server's: %v)", e.clientErr, want, e.serverErr)
	}
}

// clientOf returns a client configuration that trusts root and asks for name.
func clientOf(root *testca.Cert, name string) *tls.Config {
	return &tls.Config{RootCAs: root.Pool(), ServerName: name}
}
