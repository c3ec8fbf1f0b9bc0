// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// errHeard ends a handshake of which the hello is enough.
var errHeard = errors.New("the hello is all that was wanted")

// hear returns what crypto/tls makes of the hello that arrives at conn, and
// whether cfg lets it come to the choice of a certificate.
func hear(t *testing.T, conn net.Conn, cfg *tls.Config) (info *tls.ClientHelloInfo, chooses bool) {
	t.Helper()
	cfg.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) { info = h; return nil, nil }
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { chooses = true; return nil, errHeard }
	if err := tls.Server(conn, cfg).Handshake(); info == nil {
		t.Fatal(err)
	}
	return info, chooses
}

// said is a connection whose client says one thing.
type said struct {
	net.Conn
	io.Reader
}

func (s said) Read(b []byte) (int, error)  { return s.Reader.Read(b) }
func (s said) Write(b []byte) (int, error) { return len(b), nil }

func TestHelloSaysWhatTheProfileHas(t *testing.T) {
	for _, p := range clientProfiles() {
		t.Run(p.name, func(t *testing.T) {
			for _, group := range p.groups {
				record, err := p.hello("a.test")
				if err != nil {
					t.Fatal(err)
				}
				cfg := &tls.Config{CurvePreferences: []tls.CurveID{group}}
				if group == tls.X25519MLKEM768 {
					cfg.MinVersion = tls.VersionTLS13
				}
				info, chooses := hear(t, said{Reader: strings.NewReader(string(record))}, cfg)
				if !chooses {
					t.Errorf("group %v: no certificate is chosen", group)
				}
				got := clientProfile{p.name, p.what, info.SupportedVersions, info.CipherSuites, info.SupportedCurves, info.SignatureSchemes}
				want := p
				if len(p.versions) == 1 { // crypto/tls makes the list up from the legacy version
					got.versions = got.versions[:1]
				}
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(clientProfile{})); diff != "" {
					t.Error(diff)
				}
				if info.ServerName != "a.test" {
					t.Errorf("server name %q", info.ServerName)
				}
			}
		})
	}
}

// A profile is compared with what real clients of its kind say, where they are
// here: in all that a choice can depend on.
func TestProfilesAreWhatClientsOffer(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	clients := map[string]func(addr string){
		"go": func(addr string) { _, _ = tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) },
		"openssl3": func(addr string) {
			_ = exec.Command(openssl, "s_client", "-connect", addr).Run() // we hang up
		},
		"rsa-only": func(addr string) {
			_ = exec.Command(openssl, "s_client", "-tls1_2", "-cipher", "aRSA", "-connect", addr).Run()
		},
	}
	unchecked := map[string]string{"java17": "there is no JDK 17"}
	if out, _ := exec.Command(openssl, "version").Output(); !strings.HasPrefix(string(out), "OpenSSL 3.0") {
		for _, name := range []string{"openssl3", "rsa-only"} {
			unchecked[name] = "this is no OpenSSL 3.0, and later ones prefer other groups"
		}
	}
	for _, jdk := range testca.Keytools(t) {
		if jdk.Version == 17 {
			delete(unchecked, "java17")
			clients["java17"] = func(addr string) {
				_ = exec.Command(filepath.Join(jdk.Home, "bin", "keytool"), "-printcert", "-sslserver", addr).Run()
			}
		}
	}
	for name, why := range unchecked {
		delete(clients, name)
		t.Run(name, func(t *testing.T) { t.Skipf("NOT CHECKED: %s", why) })
	}
	for name, connect := range clients {
		t.Run(name, func(t *testing.T) {
			p, err := findClient(name, "")
			if err != nil {
				t.Fatal(err)
			}
			info := heardFrom(t, connect)
			if diff := cmp.Diff(known(p.schemes, p.schemes), known(info.SignatureSchemes, allSchemes())); diff != "" {
				t.Errorf("schemes: %s", diff)
			}
			classic := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}
			if diff := cmp.Diff(known(p.groups, classic), known(info.SupportedCurves, classic)); name != "rsa-only" && diff != "" {
				t.Errorf("groups: %s", diff)
			}
			for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				if has, offers := slices.Contains(p.versions, v), slices.Contains(info.SupportedVersions, v); has != offers {
					t.Errorf("%s: the profile has it: %v, the client offers it: %v", tls.VersionName(v), has, offers)
				}
			}
			if has, offers := authOf(p.suites), authOf(info.CipherSuites); has != offers {
				t.Errorf("suites of the profile authenticate by %b, those of the client by %b", has, offers)
			}
		})
	}
}

// heardFrom lets a client connect and returns its hello.
func heardFrom(t *testing.T, connect func(addr string)) *tls.ClientHelloInfo {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan struct{})
	go func() { defer close(done); connect(ln.Addr().String()) }()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := hear(t, conn, &tls.Config{})
	conn.Close()
	<-done
	return info
}

// known returns those of list that are among all.
func known[T comparable](list, all []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !slices.Contains(all, v) })
}

func allSchemes() []tls.SignatureScheme {
	var all []tls.SignatureScheme
	for _, p := range clientProfiles() {
		all = append(all, p.schemes...)
	}
	return all
}

// authOf returns what the TLS 1.2 suites that crypto/tls knows authenticate by.
func authOf(suites []uint16) (auth keymanager.Auth) {
	for _, s := range suites {
		switch name := tls.CipherSuiteName(s); {
		case strings.HasPrefix(name, "TLS_ECDHE_RSA_"):
			auth |= keymanager.AuthRSA
		case strings.HasPrefix(name, "TLS_ECDHE_ECDSA_"):
			auth |= keymanager.AuthECDSA
		}
	}
	return auth
}

func TestServerNameIsWhatAClientSends(t *testing.T) {
	tests := []struct{ given, want, wrong string }{
		{"", "", ""},
		{"WWW.Example.COM.", "www.example.com", ""},
		{"bücher.example", "xn--bcher-kva.example", ""},
		{"*.example.com", "", "not for a wildcard"},
		{"a b", "", "--sni"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.given, " ", "_"), func(t *testing.T) {
			got, err := serverName(tt.given)
			if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestExplainReportSaysWhatIsOdd(t *testing.T) {
	hello := &keymanager.Hello{Version: tls.VersionTLS13}
	web := &keymanager.Credential{Builder: 0, Alias: "web"}
	verdict := func(alias string) []keymanager.Verdict { return []keymanager.Verdict{{Alias: alias, Class: "ok"}} }
	tests := []struct {
		name   string
		x      framework.Explanation
		want   string
		serves bool
	}{
		{"served", framework.Explanation{Hello: hello, Selected: web, Verdicts: verdict("web")}, `alias "web" of keystore 0 (a.p12) is served`, true},
		{"unexplained", framework.Explanation{Hello: hello, Selected: web}, `note: key manager "mine" does not explain its choices`, true},
		{"contradicted", framework.Explanation{Hello: hello, Selected: web, Verdicts: verdict("api")}, "note: what is explained is not what was selected", true},
		{"contradicted_by_none", framework.Explanation{Hello: hello, Alert: 40, Verdicts: verdict("api")}, "note: what is explained is not what was selected", false},
		{"nothing", framework.Explanation{Hello: hello, Alert: 40, Verdicts: []keymanager.Verdict{}}, "nothing is selected: the client gets alert 40 (handshake failure)", false},
		{"before", framework.Explanation{Refused: errors.New("tls: no"), Alert: 70}, "refused: tls: no: the client gets alert 70 (protocol version not supported)", false},
		{"after", framework.Explanation{Hello: hello, Selected: web, Verdicts: verdict("web"), Refused: errors.New("no"), Alert: 112}, `refused, though alias "web" of keystore 0 (a.p12) is selected: no: the client gets alert 112`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &explainReport{KeyManager: "mine", keystores: []string{"a.p12"}}
			r.answer(&tt.x)
			var b strings.Builder
			if err := r.text(&b); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), tt.want) {
				t.Errorf("got:\n%s\nwant: %s", b.String(), tt.want)
			}
			if r.serves() != tt.serves {
				t.Errorf("serves: %v", r.serves())
			}
			if other := r.other("x", &tt.x, nil); !other.Same {
				t.Errorf("compared with itself: %+v", other)
			}
			if other := r.other("x", &framework.Explanation{Selected: &keymanager.Credential{Builder: 1, Alias: "web"}}, nil); other.Same {
				t.Errorf("compared with another: %+v", other)
			}
		})
	}
}
