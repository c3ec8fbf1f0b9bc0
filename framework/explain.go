// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

// Explanation is what would become of one client.
type Explanation struct {
	// Hello is what the key manager was asked; nil: the handshake ends before.
	Hello *keymanager.Hello
	// Selected is the answer, whose Key does not sign; nil: there is none.
	Selected *keymanager.Credential
	// Verdicts say why, as keymanager.Explainer does; nil: this key manager
	// can't say.
	Verdicts []keymanager.Verdict
	// Refused says why the handshake ends before the client is shown a
	// certificate, where that is for another reason than that no credential
	// fits.
	Refused error
	// Alert is what the client gets where the handshake ends; 0: it goes on.
	Alert uint8
}

// errExplained stands in for a signature: what comes after it explains nothing.
var errExplained = errors.New("this handshake is only explained")

const alertUnrecognizedName = 112 // RFC 6066, 3

// Explain says what would become of a client whose first bytes are hello: the
// TLS records that hold its ClientHello. The listener terminates it as a Server
// does, up to the first signature, which is not made. The error is one of the
// listener's configuration or the key process's, never the client's.
func (k *Keys) Explain(ctx context.Context, l Listener, hello []byte) (*Explanation, error) {
	asked := &asked{Manager: k.manager}
	asking := &Keys{manager: asked, tier: k.tier, timeout: k.timeout, log: zap.NewNop(), constraints: k.constraints}
	cfg := Config{Listeners: []Listener{l}}.withListeners()
	if err := cfg.checkListeners(); err != nil {
		return nil, err
	}
	routes, err := newRoutes(ctx, newContent(asking), zap.NewNop(), cfg.Listeners)
	if err != nil {
		return nil, err
	}
	defer routes[0].close()
	said := &script{client: bytes.NewReader(hello)}
	c := &conn{Conn: said, listener: &listener{server: &Server{ctx: ctx}}}
	end := tls.Server(c, routes[0].terminate(c, new(tls.Config))).Handshake()
	if asked.err != nil {
		return nil, fmt.Errorf("select a credential: %w", asked.err)
	}
	x := &Explanation{Hello: asked.hello, Selected: asked.cred}
	if !asked.signs {
		x.Alert = said.alert()
		if x.Hello == nil || x.Selected != nil {
			x.Refused = refusal(x.Alert, end)
		}
	}
	if x.Hello == nil {
		return x, nil
	}
	x.Verdicts, err = k.manager.Explain(ctx, x.Hello)
	if errors.Is(err, plugin.ErrUnsupported) {
		err = nil
	}
	return x, err
}

// refusal says why a handshake ends. What the front itself refuses is no error
// of crypto/tls.
func refusal(alert uint8, err error) error {
	if alert == alertUnrecognizedName {
		return errors.New("no certificate carries the server name, and unknown_sni is reject")
	}
	return err
}

// asked is a key manager that remembers the one thing that it was asked, and
// does not sign.
type asked struct {
	plugin.Manager
	hello *keymanager.Hello
	cred  *keymanager.Credential
	err   error // of a Select that failed
	signs bool  // it got as far as a signature
}

func (a *asked) Select(ctx context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	cred, err := a.Manager.Select(ctx, h)
	a.hello = keep(h)
	if err != nil {
		if !errors.Is(err, keymanager.ErrNoCredential) {
			a.err = err
		}
		return nil, err
	}
	shown := *cred // the key manager may serve others with the same one
	shown.Key = askedKey{cred.Key, a}
	a.cred = &shown
	return a.cred, nil
}

// keep copies what the hello shares with its connection.
func keep(h *keymanager.Hello) *keymanager.Hello {
	kept := *h
	kept.Schemes, kept.Groups, kept.ALPN = slices.Clone(h.Schemes), slices.Clone(h.Groups), slices.Clone(h.ALPN)
	return &kept
}

type askedKey struct {
	keymanager.Key
	asked *asked
}

func (k askedKey) Sign(context.Context, *keymanager.SignRequest) ([]byte, error) {
	k.asked.signs = true
	return nil, errExplained
}

// script is a connection whose client has said all that it will say.
type script struct {
	net.Conn // nil: nothing else is called
	client   *bytes.Reader
	last     []byte // that the server wrote
}

func (s *script) Read(b []byte) (int, error) { return s.client.Read(b) }

func (s *script) Write(b []byte) (int, error) {
	s.last = bytes.Clone(b)
	return io.Discard.Write(b)
}

func (s *script) Close() error { return nil }

// alert returns the alert that the server ended with, 0 if it didn't. All that
// are of interest come before anything is encrypted.
func (s *script) alert() uint8 {
	const recordAlert, header = 21, 5 // RFC 8446, 5.1
	if len(s.last) != header+2 || s.last[0] != recordAlert {
		return 0
	}
	return s.last[header+1]
}
