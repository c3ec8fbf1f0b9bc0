// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// offer is what of a tls.Config constraints act on.
type offer struct {
	Min, Max uint16
	Suites   []uint16
	Groups   []tls.CurveID
}

func offerOf(c *tls.Config) offer {
	return offer{c.MinVersion, c.MaxVersion, c.CipherSuites, c.CurvePreferences}
}

func TestConstraintsActOnConnection(t *testing.T) {
	const aes128, aes256 = tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
	for _, tt := range []struct {
		name, rules string // rules "default": those of JDK 25
		in, want    offer
		err         string
	}{
		{name: "default", rules: "default"},
		{name: "none", rules: ""},
		{name: "tls1.2", rules: "TLSv1.2", want: offer{Min: tls.VersionTLS13, Max: tls.VersionTLS13}},
		{name: "tls1.3", rules: "TLSv1.3", want: offer{Min: tls.VersionTLS12, Max: tls.VersionTLS12}},
		{name: "both-versions", rules: "TLSv1.2, TLSv1.3", err: `no protocol version is left: "TLSv1.3" of jdk.tls.disabledAlgorithms denies protocol TLS 1.3`},
		{name: "version-of-listener", rules: "TLSv1.3", in: offer{Min: tls.VersionTLS13}, err: `no protocol version is left: "TLSv1.3"`},
		{name: "highest-of-listener", rules: "TLSv1.2", in: offer{Max: tls.VersionTLS12}, err: `no protocol version is left: "TLSv1.2"`},
		{name: "suite", rules: "AES_128_GCM", in: offer{Suites: []uint16{aes128, aes256}}, want: offer{Suites: []uint16{aes256}}},
		{name: "suite-by-name", rules: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", in: offer{Suites: []uint16{aes128, aes256}}, want: offer{Suites: []uint16{aes256}}},
		{name: "no-suite-of-tls1.2", rules: "ECDHE", in: offer{Min: tls.VersionTLS12}, want: offer{Min: tls.VersionTLS13, Max: tls.VersionTLS13}},
		{name: "no-suite-at-all", rules: "ECDHE", in: offer{Max: tls.VersionTLS12}, err: `no protocol version is left: "ECDHE" of jdk.tls.disabledAlgorithms denies cipher suite`},
		{name: "no-suite-of-listener", rules: "AES_128_GCM", in: offer{Max: tls.VersionTLS12, Suites: []uint16{aes128}}, err: `"AES_128_GCM"`},
		{name: "old-suites", rules: "default", in: offer{Suites: []uint16{tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA, aes128}}, want: offer{Suites: []uint16{aes128}}},
		{name: "group", rules: "secp256r1", in: offer{Groups: []tls.CurveID{tls.X25519, tls.CurveP256}}, want: offer{Groups: []tls.CurveID{tls.X25519}}},
		{name: "no-group-of-listener", rules: "secp256r1", in: offer{Groups: []tls.CurveID{tls.CurveP256}}, err: `no group is left: "secp256r1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{}
			if tt.rules != "default" {
				cfg.Options.Constraints.TLS = &tt.rules
			}
			c, err := cfg.constraints()
			got := &tls.Config{MinVersion: tt.in.Min, MaxVersion: tt.in.Max, CipherSuites: tt.in.Suites, CurvePreferences: tt.in.Groups}
			if err == nil {
				err = constrain(got, c)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error = %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.name != "no-suite-of-tls1.2" && tt.want.Suites == nil {
				tt.want.Suites = signedSuites()
			}
			if diff := cmp.Diff(tt.want, offerOf(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSignedSuitesAreTheDefaults: what is listed is what crypto/tls offers where
// nothing is.
func TestSignedSuitesAreTheDefaults(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}).Handshake()
	}()
	var offered []uint16
	seen := errors.New("seen")
	err := tls.Server(server, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		offered = info.CipherSuites
		return nil, seen
	}}).Handshake()
	if !errors.Is(err, seen) {
		t.Fatal(err)
	}
	want := signedSuites()
	slices.Sort(want)
	slices.Sort(offered)
	if diff := cmp.Diff(want, offered); diff != "" {
		t.Errorf("-listed +offered:\n%s", diff)
	}
}

// TestDeniedGroupLeavesOthers: crypto/tls's default groups but one.
func TestDeniedGroupLeavesOthers(t *testing.T) {
	rules := "X25519MLKEM768"
	c, err := (&Config{Options: keymanager.Options{Constraints: keymanager.Constraints{TLS: &rules}}}).constraints()
	if err != nil {
		t.Fatal(err)
	}
	cfg := new(tls.Config)
	if err := constrain(cfg, c); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(cfg.CurvePreferences, tls.X25519MLKEM768) || !slices.Contains(cfg.CurvePreferences, tls.X25519) {
		t.Errorf("groups = %v", cfg.CurvePreferences)
	}
}

// TestServerObeysConstraints towards clients and towards backends.
func TestServerObeysConstraints(t *testing.T) {
	rules := "TLSv1.3, secp256r1, AES_256_GCM, CHACHA20_POLY1305"
	cfg := Config{Options: keymanager.Options{Constraints: keymanager.Constraints{TLS: &rules}}}
	c, err := cfg.constraints()
	if err != nil {
		t.Fatal(err)
	}
	f, root := fakeOf(t, testca.P384)
	k, _ := f.keys(t)
	k.constraints = c
	backend := offer{}
	for name, shaken := range map[string]ends{
		"server": shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t),
		"client": func() ends {
			own := k.ClientConfig()
			own.RootCAs, own.ServerName = root.Pool(), "a.test"
			server := demanding(t, root)
			server.ClientAuth = tls.RequestClientCert
			server.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				backend = offer{Max: slices.Max(h.SupportedVersions), Suites: h.CipherSuites, Groups: h.SupportedCurves}
				return nil, nil
			}
			return shake(t, own, server).ok(t)
		}(),
	} {
		if s := shaken.server; s.Version != tls.VersionTLS12 || s.CurveID == tls.CurveP256 || !strings.Contains(tls.CipherSuiteName(s.CipherSuite), "AES_128") {
			t.Errorf("%s: %s, %s, %s", name, tls.VersionName(s.Version), s.CurveID, tls.CipherSuiteName(s.CipherSuite))
		}
	}
	if backend.Max != tls.VersionTLS12 || slices.Contains(backend.Groups, tls.CurveP256) ||
		slices.Contains(backend.Suites, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384) {
		t.Errorf("offered to the backend: %+v", backend)
	}
	client := clientOf(root, "a.test")
	client.MinVersion = tls.VersionTLS13
	shake(t, client, k.TLSConfig()).alert(t, "protocol version not supported")

	listener := Config{Listeners: []Listener{{Listen: "127.0.0.1:0", Backend: defaultBackend, MinVersion: tls.VersionTLS13}}}
	_, err = newServer(t.Context(), listener, k)
	if err == nil || !strings.Contains(err.Error(), `listener "127.0.0.1:0": no protocol version is left: "TLSv1.3"`) {
		t.Errorf("error = %v", err)
	}
}
