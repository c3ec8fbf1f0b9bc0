// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// TestWrongAnswerEndsHandshake holds that the front trusts no answer.
func TestWrongAnswerEndsHandshake(t *testing.T) {
	other := testca.NewRoot(t, testca.Spec{}).Issue(t, testca.Spec{DNS: []string{"a.test"}})
	for name, spoil := range map[string]func(*keymanager.Credential){
		"no-chain":      func(c *keymanager.Credential) { c.Chain = nil },
		"no-key":        func(c *keymanager.Credential) { c.Key = nil },
		"leaf-garbage":  func(c *keymanager.Credential) { c.Chain = [][]byte{{1, 2, 3}} },
		"other-chain":   func(c *keymanager.Credential) { c.Chain = other.Chain() },
		"other-key":     func(c *keymanager.Credential) { c.Key = keymanager.FromSigner(other.Key) },
		"other-schemes": func(c *keymanager.Credential) { c.Schemes = []tls.SignatureScheme{tls.Ed25519} },
	} {
		t.Run(name, func(t *testing.T) {
			f, root := fakeOf(t, testca.P256)
			f.spoil = spoil
			k, logs := f.keys(t)
			shake(t, clientOf(root, "a.test"), k.TLSConfig()).alert(t, "internal error")
			if n := logs.FilterLevelExact(zapcore.ErrorLevel).Len(); n != 1 {
				t.Errorf("%d error lines, want 1", n)
			}
		})
	}
}

// TestOtherAliasThanDemandedIsRefused, where a plugin doesn't look at the alias.
// Case doesn't count, as in Java.
func TestOtherAliasThanDemandedIsRefused(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	k, logs := f.keys(t)
	s := serveKeys(t, Config{Listeners: []Listener{{Alias: "web"}}}, k)
	answer := func(alias string) error {
		f.spoil = func(c *keymanager.Credential) { c.Alias = alias }
		c, err := tls.Dial("tcp", s.addr(), clientOf(root, "a.test"))
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := answer("WEB"); err != nil {
		t.Error(err)
	}
	if err := answer("other"); err == nil || err.Error() != "remote error: tls: internal error" {
		t.Errorf("error = %v", err)
	}
	lines := logs.FilterLevelExact(zapcore.ErrorLevel).All()
	if len(lines) != 1 || lines[0].ContextMap()[logging.FieldAlias] != "other" ||
		lines[0].ContextMap()[logging.FieldError] != `another entry than "web", which the listener or host demands` {
		t.Errorf("log = %v", lines)
	}
}

func TestUnofferedSchemeIsRefused(t *testing.T) {
	f, _ := fakeOf(t, testca.P384)
	cred, err := f.Select(t.Context(), &keymanager.Hello{Schemes: keymanager.Schemes(), Version: tls.VersionTLS13, Auth: 3})
	if err != nil {
		t.Fatal(err)
	}
	h := &keymanager.Hello{Schemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, Version: tls.VersionTLS13}
	if _, err := checkAnswer(h, cred); err == nil {
		t.Error("a P-384 key for a TLS 1.3 client that knows P-256 only was accepted")
	}
	h.Version = tls.VersionTLS12 // where the curve is not bound to the scheme
	if _, err := checkAnswer(h, cred); err != nil {
		t.Error(err)
	}
}

func flip(sig []byte, err error) ([]byte, error) {
	if len(sig) > 0 {
		sig[len(sig)-1] ^= 1
	}
	return sig, err
}

// TestWrongSignatureEndsHandshake: the first signature with a key is always
// verified, whatever its type.
func TestWrongSignatureEndsHandshake(t *testing.T) {
	for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.Ed25519} {
		t.Run(string(kt), func(t *testing.T) {
			f, root := fakeOf(t, kt)
			f.spoilSign = flip
			k, logs := f.keys(t)
			shake(t, clientOf(root, "a.test"), k.TLSConfig()).alert(t, "internal error")
			lines := logs.FilterMessage(logging.MsgSignFailed).All()
			if len(lines) != 1 || lines[0].Level != zapcore.ErrorLevel || lines[0].ContextMap()[logging.FieldAlias] != string(kt) {
				t.Errorf("log = %v", lines)
			}
		})
	}
}

func TestVerificationIsSampled(t *testing.T) {
	var s keyState
	verified := 0
	for range 3 * verifyEach {
		if s.mustVerify(testca.NewKey(t, testca.P256).Public()) {
			verified++
		}
	}
	if verified != 3 {
		t.Errorf("%d of %d verified, want 3", verified, 3*verifyEach)
	}
	s.bad.Store(true)
	if !s.mustVerify(testca.NewKey(t, testca.P256).Public()) {
		t.Error("a key that gave a wrong signature is not verified")
	}
	if rsa := testca.NewKey(t, testca.RSA2048).Public(); !new(keyState).mustVerify(rsa) {
		t.Error("RSA is not verified")
	}
}

// TestNewGenerationForgetsKeys: after a restart of the key process, which
// begins a new generation, the first signature is verified again.
func TestNewGenerationForgetsKeys(t *testing.T) {
	var a knownKeys
	id := keymanager.KeyID{1}
	first := a.at(1).state(id)
	if a.at(1).state(id) != first || a.at(0).state(id) != first {
		t.Error("the state of a key is lost within a generation")
	}
	if a.at(2).state(id) == first {
		t.Error("the state of a key outlives its generation")
	}
}

func TestKnownKeysAreBounded(t *testing.T) {
	e := &epoch{keys: map[keymanager.KeyID]*keyState{}}
	for i := range maxKeys + 10 {
		e.state(keymanager.KeyID{byte(i), byte(i >> 8), byte(i >> 16)})
	}
	if len(e.keys) > maxKeys {
		t.Errorf("%d keys are remembered, want at most %d", len(e.keys), maxKeys)
	}
}
