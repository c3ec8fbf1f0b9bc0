// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// TLSConfig returns a server configuration whose certificates and signatures
// come from the key manager. It is the caller's, who may change and clone it:
// versions, cipher suites, ClientAuth, ClientCAs, NextProtos and all the rest
// mean what they mean in crypto/tls, and session tickets are crypto/tls's own.
// Only GetCertificate is to stay, and versions below TLS 1.2 can't be served.
// What the constraints on TLS deny is left out to begin with.
//
// A full handshake costs one Sign, and one Select where the key manager's answers
// hold for a single handshake; a resumed one costs nothing in TLS 1.3 and such a
// Select in TLS 1.2, where crypto/tls asks for the certificate before it looks
// at the ticket. Where a handshake's context has no deadline each of
// the two is bounded by Config.SignTimeout.
//
// A client that no credential fits gets the alert handshake_failure, and
// internal_error where the key process fails.
func (k *Keys) TLSConfig() *tls.Config {
	return k.constrained(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.certificate})
}

// constrained returns a configuration with defaults without what the
// constraints on TLS deny. Open has seen that they leave something.
func (k *Keys) constrained(cfg *tls.Config) *tls.Config {
	_ = constrain(cfg, k.constraints)
	return cfg
}

// What crypto/tls is told by an answer without an error.
var (
	errNothingCommon = errors.New("no version, group or cipher suite in common")
	errUnknownName   = errors.New("no certificate carries the server name, and unknown_sni is reject")
)

// certificate is the GetCertificate of all server configurations.
func (k *Keys) certificate(info *tls.ClientHelloInfo) (*tls.Certificate, error) {
	hs := handshakeOf(info)
	h := helloOf(info, &hs)
	hs.resumes = h.Version < tls.VersionTLS13 && slices.Contains(info.Extensions, extSessionTicket)
	if h.Auth == 0 {
		k.log.Debug(logging.MsgNoCredential, append(hs.fields(),
			zap.String(logging.FieldReason, errNothingCommon.Error()))...)
		hs.fail(ReasonProtocol, errNothingCommon)
		return &tls.Certificate{}, nil
	}
	if hs.named && h.ServerName == "" {
		return k.unrecognized(&hs, h, &keymanager.Credential{})
	}
	return k.credential(&hs, h)
}

// credential has a credential for h selected and returns it as crypto/tls
// wants it. An empty certificate means that none fits: in the server role
// crypto/tls then ends the handshake with alert 40 in both versions, where an
// error means alert 80, and neither certificate nor error 112; in the client
// role it is what is sent.
func (k *Keys) credential(hs *handshake, h *keymanager.Hello) (*tls.Certificate, error) {
	found, err := k.answer(hs, h)
	if errors.Is(err, keymanager.ErrNoCredential) {
		hs.fail(ReasonNoCredential, err)
		return &tls.Certificate{}, nil
	}
	if err != nil {
		hs.fail(ReasonPlugin, err)
		return nil, fmt.Errorf("select a credential: %w", err)
	}
	if hs.named && choose.Carries(found.cert.Leaf, h.ServerName) == choose.NoMatch {
		return k.unrecognized(hs, h, found.cred)
	}
	cert := *found.cert
	cert.PrivateKey = &signer{keys: k, handshake: hs, cred: found.cred, leaf: cert.Leaf, purpose: purposeOf(h)}
	hs.note(k.tier, found.cred)
	return &cert, nil
}

// unrecognized ends the handshake of h by alert unrecognized_name, and says why.
func (k *Keys) unrecognized(hs *handshake, h *keymanager.Hello, cred *keymanager.Credential) (*tls.Certificate, error) {
	logging.LogKey(k.log, zapcore.DebugLevel, logging.MsgNoCredential, logging.KeyEvent{
		Builder: cred.Builder, Alias: cred.Alias, Generation: cred.Generation,
		Reason: errUnknownName.Error(),
	}, append(hs.fields(), zap.String(logging.FieldServerName, h.ServerName))...)
	hs.fail(ReasonUnknownName, errUnknownName)
	return nil, nil
}

// purposeOf returns what will be signed in the handshake of h.
func purposeOf(h *keymanager.Hello) keymanager.Purpose {
	switch {
	case h.Role == keymanager.RoleServer && h.Version == tls.VersionTLS13:
		return keymanager.ServerTLS13
	case h.Role == keymanager.RoleServer:
		return keymanager.ServerTLS12
	case h.Version == tls.VersionTLS13:
		return keymanager.ClientTLS13
	}
	return keymanager.ClientTLS12
}

// msgSelectFailed is the keymanager line of a selection that failed.
const msgSelectFailed = "select failed"

// report logs what went wrong between front and key process, as often as limit
// lets it. A handshake that was given up is nobody's failure.
func (k *Keys) report(limit *onceASecond, msg string, cred *keymanager.Credential, hs *handshake, reason string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	dropped, ok := limit.pass()
	if !ok {
		return
	}
	fields := hs.fields()
	if dropped > 0 {
		fields = append(fields, zap.Int64("lines_dropped", dropped))
	}
	logging.LogKey(k.log, zapcore.ErrorLevel, msg, logging.KeyEvent{
		Builder: cred.Builder, Alias: cred.Alias, Generation: cred.Generation, Reason: reason, Err: err,
	}, fields...)
}
