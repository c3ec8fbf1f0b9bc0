// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"
	"time"
)

// A key manager is kept for the backends that ask for a certificate, too, those of
// hosts included.
func TestFormerKeysAreKeptForBackends(t *testing.T) {
	t.Parallel()
	certified := BackendTLS{ClientCertificate: true}
	for name, tt := range map[string]struct {
		listener Listener
		want     time.Duration
	}{
		"no-backend": {Listener{}, 10 * time.Second},
		"anonymous":  {Listener{Backend: "tls://a.test:1", ConnectTimeout: time.Minute}, 10 * time.Second},
		"plain":      {Listener{Backend: "tcp://a.test:1", BackendTLS: certified, ConnectTimeout: time.Minute}, 10 * time.Second},
		"bytes":      {Listener{Backend: "tls://a.test:1", BackendTLS: certified}, 15 * time.Second},
		"http":       {Listener{Backend: "https://a.test:1", BackendTLS: certified, ConnectTimeout: 30 * time.Second}, 70 * time.Second},
		"host": {Listener{ConnectTimeout: 30 * time.Second, Hosts: []Host{
			{Names: []string{"a.test"}, Backend: "tls://a.test:1", BackendTLS: certified},
		}}, 40 * time.Second},
	} {
		cfg := newState(Config{Listeners: []Listener{tt.listener}}, nil).cfg
		if got := cfg.asking(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
