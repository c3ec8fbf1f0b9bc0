// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// certificateVerify returns what a TLS 1.3 server or client signs (RFC 8446,
// 4.4.3).
func certificateVerify(role string) []byte {
	transcript := sha256.Sum256([]byte("a transcript"))
	msg := bytes.Repeat([]byte{' '}, 64)
	msg = append(msg, "TLS 1.3, "+role+" CertificateVerify\x00"...)
	return append(msg, transcript[:]...)
}

func handshakeRequest() *keymanager.SignRequest {
	return &keymanager.SignRequest{
		Scheme: tls.ECDSAWithP256AndSHA256, Purpose: keymanager.ServerTLS13, Message: certificateVerify("server"),
		Listener: "127.0.0.1:8443", ConnID: "c1", Peer: "192.0.2.1:5000",
	}
}

func serverHello(name string) *keymanager.Hello {
	return &keymanager.Hello{
		Role: keymanager.RoleServer, ServerName: name, Version: tls.VersionTLS13,
		Auth: keymanager.AuthRSA | keymanager.AuthECDSA, Schemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}
}

// verifyHandshake checks a signature over handshakeRequest's message.
func verifyHandshake(t *testing.T, leaf *testca.Cert, sig []byte) {
	t.Helper()
	digest := sha256.Sum256(handshakeRequest().Message)
	if !ecdsa.VerifyASN1(leaf.Cert.PublicKey.(*ecdsa.PublicKey), digest[:], sig) {
		t.Error("the signature does not verify")
	}
}

// open opens the test tier in this process for one pair.
func open(t *testing.T, set testSettings) (*Local, *testca.Cert, *observer.ObservedLogs) {
	t.Helper()
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	core, logs := observer.New(zap.DebugLevel)
	settings, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	l, err := InProcess(t.Context(), testTier(), Spec{Sources: []keymanager.Source{src}, Settings: settings, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, leaf, logs
}

func TestLocalSelectsAndSigns(t *testing.T) {
	for _, plain := range []bool{false, true} {
		l, leaf, logs := open(t, testSettings{Plain: plain})
		c, err := l.Select(t.Context(), serverHello("a.example"))
		if err != nil {
			t.Fatal(err)
		}
		if c.Leaf == nil || c.Generation != 1 {
			t.Errorf("leaf %v, generation %d", c.Leaf, c.Generation)
		}
		sig, err := c.Key.Sign(t.Context(), handshakeRequest())
		if err != nil {
			t.Fatal(err)
		}
		verifyHandshake(t, leaf, sig)
		signed := logs.FilterMessage(logging.MsgSigned).All()
		if len(signed) != 1 {
			t.Fatalf("%d lines of signatures, want 1", len(signed))
		}
		want := map[string]any{
			"tier": "test", "builder_index": int64(0), "alias": "pair", "generation": uint64(1),
			"key_id": keymanager.KeyIDOf(leaf.Cert).String(), "scheme": "ECDSAWithP256AndSHA256",
			"listener": "127.0.0.1:8443", "conn": "c1", "peer": "192.0.2.1:5000",
		}
		for k, v := range want {
			if got := signed[0].ContextMap()[k]; got != v {
				t.Errorf("field %s is %v, want %v", k, got, v)
			}
		}
		if signed[0].Level != zap.DebugLevel || signed[0].LoggerName != logging.KeyManager {
			t.Errorf("line is %v of %q", signed[0].Level, signed[0].LoggerName)
		}
	}
}

func TestSelectAnswersNoCredential(t *testing.T) {
	l, _, _ := open(t, testSettings{})
	if _, err := l.Select(t.Context(), serverHello("b.example")); !errors.Is(err, keymanager.ErrNoCredential) {
		t.Errorf("error is %v", err)
	}
	if _, err := l.Select(t.Context(), &keymanager.Hello{}); err == nil || errors.Is(err, keymanager.ErrNoCredential) {
		t.Errorf("a hello without a role: %v", err)
	}
}

// A tier that panics costs one call and says so in one line.
func TestPanicIsAnError(t *testing.T) {
	calls := map[string]func(*Local) error{
		"select": func(l *Local) error { _, err := l.Select(t.Context(), serverHello("")); return err },
		"list":   func(l *Local) error { _, err := l.List(t.Context()); return err },
		"reload": func(l *Local) error { return l.Reload(t.Context()) },
		"sign": func(l *Local) error {
			c, err := l.Select(t.Context(), serverHello(""))
			if err != nil {
				return err
			}
			_, err = c.Key.Sign(t.Context(), handshakeRequest())
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			l, _, logs := open(t, testSettings{Panic: name})
			logs.TakeAll()
			err := call(l)
			if err == nil || !strings.Contains(err.Error(), "panicked") {
				t.Fatalf("error is %v", err)
			}
			lines := logs.FilterMessage(msgPanic).All()
			if len(lines) != 1 || lines[0].Level != zapcore.ErrorLevel {
				t.Fatalf("lines: %v", lines)
			}
			stack, _ := lines[0].ContextMap()[logging.FieldStack].(string)
			first, _, _ := strings.Cut(stack, "\n")
			if !strings.Contains(first, "trip") && !strings.Contains(first, "Sign") {
				t.Errorf("the stack begins at %q", first)
			}
			if strings.Contains(stack, "(0x") || strings.Contains(stack, "{0x") {
				t.Error("the stack shows arguments")
			}
		})
	}
}

func TestOpenPanicIsAnError(t *testing.T) {
	_, err := InProcess(t.Context(), testTier(), Spec{Settings: json.RawMessage(`{"panic":"open"}`)})
	if err == nil || !strings.Contains(err.Error(), "tripped at open") {
		t.Errorf("error is %v", err)
	}
}

func TestReloadIsAGeneration(t *testing.T) {
	l, leaf, _ := open(t, testSettings{})
	ctx, stop := context.WithCancel(t.Context())
	var newest atomic.Uint64
	done := make(chan error)
	go func() { done <- l.Watch(ctx, func(c keymanager.Change) { newest.Store(c.Generation) }) }()
	if err := l.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := l.Select(t.Context(), serverHello(""))
	if err != nil || c.Generation != 2 {
		t.Errorf("generation is %d after a reload (%v), want 2", c.Generation, err)
	}
	eventually(t, "the new generation", func() bool { return newest.Load() == 2 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	sig, err := c.Key.Sign(t.Context(), handshakeRequest())
	if err != nil {
		t.Fatal(err)
	}
	verifyHandshake(t, leaf, sig)
}

func TestClosedLocalRefuses(t *testing.T) {
	l, _, _ := open(t, testSettings{})
	c, err := l.Select(t.Context(), serverHello(""))
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan error)
	go func() { watched <- l.Watch(context.Background(), func(keymanager.Change) {}) }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	if err := l.Close(); err != nil || l.Err() != nil {
		t.Errorf("second Close %v, Err %v", err, l.Err())
	}
	calls := map[string]func() error{
		"watch":  func() error { return <-watched },
		"select": func() error { _, err := l.Select(t.Context(), serverHello("")); return err },
		"sign":   func() error { _, err := c.Key.Sign(t.Context(), handshakeRequest()); return err },
		"list":   func() error { _, err := l.List(t.Context()); return err },
		"reload": func() error { return l.Reload(t.Context()) },
		"levels": func() error { return l.SetLogLevels(t.Context(), nil) },
		"trust":  func() error { _, _, err := l.Trust(t.Context(), "x", "", keymanager.PasswordRef{}); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: error is %v, want ErrClosed", name, err)
		}
	}
}
