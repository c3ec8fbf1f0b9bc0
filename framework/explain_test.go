// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// clientHello returns what a client with cfg says first.
func clientHello(t *testing.T, cfg *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, cfg).Handshake() // fails when ours is closed
		theirs.Close()
	}()
	defer ours.Close()
	hello := make([]byte, 16<<10)
	n, err := ours.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	return hello[:n]
}

// explainingFake has a verdict, too.
type explainingFake struct{ *fake }

func (explainingFake) Explain(_ context.Context, h *keymanager.Hello) ([]keymanager.Verdict, error) {
	return []keymanager.Verdict{{Alias: h.Alias, Reason: h.ServerName}}, nil
}

func TestExplainEndsWhereTheHandshakeWould(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	ec := root.Issue(t, testca.Spec{Name: "ec", DNS: []string{"a.test"}})
	in12, in13 := &tls.Config{MaxVersion: tls.VersionTLS12}, &tls.Config{MinVersion: tls.VersionTLS13}
	rsaSuites := &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}
	hosts := []Host{{Names: []string{"a.test"}, Alias: "of-host"}}
	tests := []struct {
		name     string
		client   *tls.Config
		sni      string
		listener Listener
		want     keymanager.Hello // alias and version
		selected bool
		refused  string
		alert    uint8
	}{
		{"served", in13, "a.test", Listener{}, keymanager.Hello{Version: tls.VersionTLS13}, true, "", 0},
		{"served_in_tls12", in12, "a.test", Listener{}, keymanager.Hello{Version: tls.VersionTLS12}, true, "", 0},
		{"alias_of_listener", in13, "b.test", Listener{Alias: "of-listener", Hosts: hosts}, keymanager.Hello{Version: tls.VersionTLS13, Alias: "of-listener"}, true, "", 0},
		{"alias_of_host", in13, "a.test", Listener{Alias: "of-listener", Hosts: hosts}, keymanager.Hello{Version: tls.VersionTLS13, Alias: "of-host"}, true, "", 0},
		{"hello_retry", &tls.Config{MinVersion: tls.VersionTLS13}, "a.test", Listener{Groups: []uint16{uint16(tls.CurveP521)}}, keymanager.Hello{}, false, "EOF", 0},
		{"nothing_fits", rsaSuites, "a.test", Listener{}, keymanager.Hello{Version: tls.VersionTLS12}, false, "", 40},
		{"no_common_version", in12, "a.test", Listener{MinVersion: tls.VersionTLS13}, keymanager.Hello{}, false, "unsupported versions", 70},
		{"no_common_suite", rsaSuites, "a.test", Listener{CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}, keymanager.Hello{}, false, "cipher suite", 40},
		{"unknown_name", in13, "b.test", Listener{UnknownSNI: UnknownSNIReject}, keymanager.Hello{Version: tls.VersionTLS13}, true, "unknown_sni is reject", 112},
		{"no_name", in13, "", Listener{UnknownSNI: UnknownSNIReject}, keymanager.Hello{}, false, "unknown_sni is reject", 112},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{certs: []*testca.Cert{ec}}
			k, logs := f.keys(t)
			k.manager = explainingFake{f}
			client := tt.client.Clone()
			client.ServerName, client.InsecureSkipVerify = tt.sni, true
			x, err := k.Explain(t.Context(), tt.listener, clientHello(t, client))
			if err != nil {
				t.Fatal(err)
			}
			var got keymanager.Hello
			var verdicts []keymanager.Verdict
			if x.Hello != nil {
				got = keymanager.Hello{Version: x.Hello.Version, Alias: x.Hello.Alias}
				verdicts = []keymanager.Verdict{{Alias: tt.want.Alias, Reason: tt.sni}}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("hello: %s", diff)
			}
			if diff := cmp.Diff(verdicts, x.Verdicts); diff != "" {
				t.Errorf("verdicts: %s", diff)
			}
			if (x.Selected != nil) != tt.selected || x.Alert != tt.alert {
				t.Errorf("selected %v, alert %d; want %v, %d", x.Selected != nil, x.Alert, tt.selected, tt.alert)
			}
			if (x.Refused != nil) != (tt.refused != "") || x.Refused != nil && !strings.Contains(x.Refused.Error(), tt.refused) {
				t.Errorf("refused for %v, want %q", x.Refused, tt.refused)
			}
			if f.signs.Load() > 0 || logs.Len() > 0 {
				t.Errorf("%d signatures were made, %d lines written", f.signs.Load(), logs.Len())
			}
		})
	}
}

func TestExplainWithoutVerdicts(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	f := &fake{certs: []*testca.Cert{root.Issue(t, testca.Spec{Name: "ec"})}}
	k, _ := f.keys(t)
	hello := clientHello(t, &tls.Config{InsecureSkipVerify: true})
	x, err := k.Explain(t.Context(), Listener{}, hello)
	if err != nil || x.Selected == nil || x.Selected.Alias != "ec" || x.Verdicts != nil {
		t.Errorf("explained %+v, %v", x, err)
	}
	f.selectErr = errors.New("no answer")
	if _, err := k.Explain(t.Context(), Listener{}, hello); !errors.Is(err, f.selectErr) {
		t.Errorf("error is %v", err)
	}
}
