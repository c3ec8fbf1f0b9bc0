// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"testing"
)

// TestListenersHaveTheirOwnTLS: versions, suites and groups are those of the
// listener and of no other.
func TestListenersHaveTheirOwnTLS(t *testing.T) {
	const suite = tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
	s := serve(t, Config{Listeners: []Listener{
		{MinVersion: tls.VersionTLS13},
		{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}, Groups: []uint16{uint16(tls.CurveP384)}},
	}})
	dial := func(i int, change func(*tls.Config)) (tls.ConnectionState, error) {
		cfg := clientOf(s.root, "a.test")
		change(cfg)
		c, err := tls.Dial("tcp", s.Addrs()[i].String(), cfg)
		if err != nil {
			return tls.ConnectionState{}, err
		}
		defer c.Close()
		return c.ConnectionState(), nil
	}
	all := func(*tls.Config) {}
	if got, err := dial(0, all); err != nil || got.Version != tls.VersionTLS13 {
		t.Errorf("first: %s, %v", tls.VersionName(got.Version), err)
	}
	got, err := dial(1, all)
	if err != nil || got.Version != tls.VersionTLS12 || got.CipherSuite != suite || got.CurveID != tls.CurveP384 {
		t.Errorf("second: %s, %s, %v, %v", tls.VersionName(got.Version), tls.CipherSuiteName(got.CipherSuite), got.CurveID, err)
	}
	for name, tt := range map[string]struct {
		listener int
		change   func(*tls.Config)
	}{
		"version": {0, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }},
		"suite":   {1, func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256} }},
		"group":   {1, func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }},
	} {
		if _, err := dial(tt.listener, tt.change); err == nil {
			t.Errorf("a client with another %s is served", name)
		}
	}
}
