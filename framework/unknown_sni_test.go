// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestUnknownServerName has openssl name a server that no certificate carries,
// or none, by each version and after a HelloRetryRequest.
func TestUnknownServerName(t *testing.T) {
	k, _ := openTier(t, "pkixcached", testca.P256)
	s := serveKeys(t, Config{Listeners: []Listener{{UnknownSNI: UnknownSNIReject, Hosts: []Host{{Names: []string{"b.test"}}}}, {}}}, k)
	strict, lax := s.Addrs()[0].String(), s.Addrs()[1].String()
	const unrecognized, served = "SSL alert number 112", "Server certificate"
	for _, tt := range []struct {
		name, addr, sni, want string
	}{
		{"known", strict, "a.test", served},
		{"known-in-capitals", strict, "A.TEST", served},
		{"unknown", strict, "x.test", unrecognized},
		{"of-a-host", strict, "b.test", unrecognized}, // which no certificate carries
		{"none", strict, "", unrecognized},
		{"unknown-by-default", lax, "x.test", served},
		{"none-by-default", lax, "", served},
	} {
		for version, args := range map[string][]string{
			"tls1.2": {"-tls1_2"}, "tls1.3": {"-tls1_3"}, "retry": {"-tls1_3", "-groups", "X448:P-256"},
		} {
			t.Run(tt.name+"-"+version, func(t *testing.T) {
				name := []string{"-servername", tt.sni}
				if tt.sni == "" {
					name = []string{"-noservername"}
				}
				out := tool(t, "openssl", append(append([]string{"s_client", "-connect", tt.addr}, args...), name...)...)
				if !strings.Contains(out, tt.want) {
					t.Errorf("no %q:\n%s", tt.want, out)
				}
			})
		}
	}
}

// TestUnknownServerNameWithoutFit: a known name that the client can't be served
// by is no unknown name.
func TestUnknownServerNameWithoutFit(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	f.certs = nil
	s := serveFake(t, Config{Listeners: []Listener{{UnknownSNI: UnknownSNIReject}}}, f, root)
	if _, err := s.dial(t, nil); err == nil || err.Error() != "remote error: tls: handshake failure" {
		t.Errorf("error = %v, want alert 40", err)
	}
	if _, err := s.dial(t, naming("")); err == nil || err.Error() != "remote error: tls: unrecognized name" {
		t.Errorf("error = %v, want alert 112", err)
	}
	if n := f.selects.Load(); n != 1 {
		t.Errorf("%d selects, want none for a client that names no server", n)
	}
}

// TestUnknownServerNameDoesNotResume: a session that began under a known name.
func TestUnknownServerNameDoesNotResume(t *testing.T) {
	k, _ := openTier(t, "pkixcached", testca.P256)
	s := serveKeys(t, Config{Listeners: []Listener{{UnknownSNI: UnknownSNIReject}}}, k)
	for _, v := range []string{"-tls1_2", "-tls1_3"} {
		session := filepath.Join(t.TempDir(), "session")
		args := []string{"s_client", v, "-connect", s.addr(), "-ign_eof"}
		asking(t, append(args, "-servername", "a.test", "-sess_out", session)...)
		if out := asking(t, append(args, "-servername", "a.test", "-sess_in", session)...); !strings.Contains(out, "Reused, ") {
			t.Errorf("%s: not resumed under its name:\n%s", v, out)
		}
		for _, name := range [][]string{{"-servername", "x.test"}, {"-noservername"}} {
			out, _ := tell(t, append(append(args, "-sess_in", session), name...)...)
			if !strings.Contains(out, "SSL alert number 112") {
				t.Errorf("%s %v:\n%s", v, name, out)
			}
		}
	}
}

// TestUnknownServerNameRejectedAfterReload: a session from before is no way round it.
func TestUnknownServerNameRejectedAfterReload(t *testing.T) {
	for name, version := range map[string]uint16{"tls1.2": tls.VersionTLS12, "tls1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			l := Listener{Listen: "127.0.0.1:0", Backend: echo(t)}
			s := serve(t, Config{Listeners: []Listener{l}})
			client := &tls.Config{
				ServerName: "x.test", InsecureSkipVerify: true, MaxVersion: version,
				ClientSessionCache: tls.NewLRUClientSessionCache(1),
			}
			for i, want := range []string{"full", "resumed"} {
				if got, err := visit(t, s.addr(), client); err != nil || got != want {
					t.Fatalf("connection %d: %q, %v, want %q", i, got, err, want)
				}
			}
			l.UnknownSNI = UnknownSNIReject
			if err := s.Apply(t.Context(), Config{Listeners: []Listener{l}}); err != nil {
				t.Fatal(err)
			}
			if got, err := visit(t, s.addr(), client); err == nil || err.Error() != "remote error: tls: unrecognized name" {
				t.Errorf("%q, %v, want alert 112", got, err)
			}
		})
	}
}

// TestUnknownServerNameOfDemandedAlias: reject is about what the certificate carries,
// however it was chosen.
func TestUnknownServerNameOfDemandedAlias(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{UnknownSNI: UnknownSNIReject, Alias: "P256"}}})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_, err = s.dial(t, func(c *tls.Config) { c.ServerName = "x.test" })
	if err == nil || err.Error() != "remote error: tls: unrecognized name" {
		t.Errorf("error = %v, want alert 112", err)
	}
}
