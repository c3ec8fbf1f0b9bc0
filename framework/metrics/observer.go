// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// Values of the label result, where it isn't the Server's own word.
const (
	resultOK      = "ok"
	resultNone    = "none"    // no credential fits
	resultRefused = "refused" // what was to be signed is no handshake
	resultError   = "error"
)

// Observer returns what a Server is to tell. It is for one Config.
func (m *Metrics) Observer() framework.Observer {
	return framework.Observer{
		Handshake: m.handshake,
		Selection: m.selection,
		Signature: m.signature,
		Opened:    m.opened,
		Closed:    m.closed,
		Dropped:   func(listener, limit string) { m.dropped.WithLabelValues(label(listener), limit).Inc() },
		Reloaded:  m.reloaded,
	}
}

func (m *Metrics) handshake(e framework.HandshakeEvent) {
	listener := label(e.Listener)
	m.handshakes.WithLabelValues(listener, e.Result, string(e.Reason)).Inc()
	m.handshakeTime.WithLabelValues(listener, e.Result).Observe(e.Duration.Seconds())
	if e.State != nil && e.State.DidResume {
		m.resumed.WithLabelValues(listener).Inc()
	}
}

func (m *Metrics) selection(reused bool, err error) {
	source, result := "key_process", resultOK
	if reused {
		source = "cache"
	}
	switch {
	case errors.Is(err, keymanager.ErrNoCredential):
		result = resultNone
	case err != nil:
		result = resultError
	}
	m.selections.WithLabelValues(source, result).Inc()
}

func (m *Metrics) signature(e framework.SignatureEvent) {
	took := e.Duration.Seconds()
	m.signatureTime.Observe(took)
	a := m.signatures.of(e.Builder, e.Alias)
	a.seconds.Add(took)
	switch {
	case e.Err == nil:
		a.ok.Inc()
	case errors.Is(e.Err, keymanager.ErrNotHandshake):
		a.refused.Inc()
	default:
		a.failed.Inc()
	}
}

func (m *Metrics) opened(listener string) {
	listener = label(listener)
	m.accepted.WithLabelValues(listener).Inc()
	m.open.WithLabelValues(listener).Inc()
}

func (m *Metrics) closed(e framework.ConnectionEvent) {
	listener := label(e.Listener)
	m.open.WithLabelValues(listener).Dec()
	m.ended.WithLabelValues(listener, e.Result).Inc()
	m.in.WithLabelValues(listener).Add(float64(e.In))
	m.out.WithLabelValues(listener).Add(float64(e.Out))
}

func (m *Metrics) reloaded(what string, err error) {
	if err != nil {
		m.reloads.WithLabelValues(what, resultError).Inc()
		m.reloadOK.WithLabelValues(what).Set(0)
		return
	}
	m.reloads.WithLabelValues(what, resultOK).Inc()
	m.reloadOK.WithLabelValues(what).Set(1)
	m.reloadLast.WithLabelValues(what).SetToCurrentTime()
}
