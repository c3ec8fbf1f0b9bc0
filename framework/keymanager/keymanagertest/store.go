// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// requestToBeSigned returns the part of a certificate request that is signed.
func requestToBeSigned(t *testing.T) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"w.test"}}, testca.NewKey(t, testca.P256))
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return csr.RawTBSCertificateRequest
}

// openErrors checks that what can't be served is refused, with an error that
// names the file.
func (s suite) openErrors(t *testing.T) {
	ca := newCA(t)
	good := newStore(t, ca.entry("a", named("a.test")))
	wrong, empty := keymanager.Secret("wrong"), filepath.Join(t.TempDir(), "empty.p12")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(src keymanager.Source, pw keymanager.PasswordRef) keymanager.Source { src.Store = pw; return src }
	at := func(path string) keymanager.Source { src := good.source(); src.Paths = []string{path}; return src }
	trusted := newStore(t, testca.StoreEntry{Alias: "ca", Cert: ca.ec, Trusted: true})
	tests := []struct {
		name   string
		source keymanager.Source
		opt    keymanager.Options
		want   string
	}{
		{"wrong_password", with(good.source(), keymanager.PasswordRef{Value: &wrong}), keymanager.Options{}, good.path},
		{"no_password", with(good.source(), keymanager.PasswordRef{}), keymanager.Options{}, good.path},
		{"no_password_file", with(good.source(), keymanager.PasswordRef{File: good.path + ".pass"}), keymanager.Options{}, good.path + ".pass"},
		{"no_file", at(good.path + ".nope"), keymanager.Options{}, good.path + ".nope"},
		{"empty_file", at(empty), keymanager.Options{}, empty},
		{"directory", at(filepath.Dir(empty)), keymanager.Options{}, filepath.Dir(empty)},
		{"no_key_entry", trusted.source(), keymanager.Options{}, trusted.path},
		{"unknown_alias", good.source(), keymanager.Options{Aliases: []string{"nope"}}, `"a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Open(t, keymanager.Env{Builders: []keymanager.Source{tt.source}, Options: tt.opt, FirstGeneration: 1})
			if err == nil {
				t.Fatal("the tier opens")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not name %s", err, tt.want)
			}
			if strings.Contains(err.Error(), string(wrong)+`"`) || strings.Contains(err.Error(), password) {
				t.Errorf("error %q shows a password", err)
			}
		})
	}
}

// brokenEntry has an entry whose key is not its certificate's, beside a good
// one.
func (s suite) brokenEntry(t *testing.T) {
	ca := newCA(t)
	broken := ca.entry("broken", named("broken.test"))
	broken.Key = testca.NewKey(t, testca.P256)
	st := newStore(t, broken, ca.entry("good", named("good.test")))
	km, err := s.Open(t, keymanager.Env{Builders: []keymanager.Source{st.source()}, FirstGeneration: 1})
	if s.Caps.Strict {
		if err == nil || !strings.Contains(err.Error(), st.path) || !strings.Contains(err.Error(), "broken") {
			t.Errorf("open = %v, want an error that names file and alias", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := chosen(t, km, hello("broken.test")); got != "good" {
		t.Errorf("chosen %q, want good", got)
	}
	for _, e := range s.entries(t, km) {
		if e.Usable != (e.Alias == "good") || (e.Reason == "") != e.Usable {
			t.Errorf("entry %q: usable %v, reason %q", e.Alias, e.Usable, e.Reason)
		}
	}
}

func (s suite) entries(t *testing.T, km keymanager.KeyManager) []keymanager.Entry {
	t.Helper()
	l, ok := km.(keymanager.Lister)
	if !ok {
		t.Skipf("%T does not list", km)
	}
	entries, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// list checks that everything is listed, by builder and in store order, and
// that each usable entry signs.
func (s suite) list(t *testing.T) {
	ca := newCA(t)
	a, b := ca.entry("a", named("a.test")), ca.entry("b", expired("b.test"))
	km := s.open(t, keymanager.Options{},
		newStore(t, b, a).source(),
		newStore(t, testca.StoreEntry{Alias: "ca", Cert: ca.ec, Trusted: true}, a).source())
	entries := s.entries(t, km)

	var got []string
	for _, e := range entries {
		got = append(got, strings.Join([]string{string(rune('0' + e.Builder)), e.Alias, e.Kind}, "/"))
	}
	if want := "0/b/key 0/a/key 1/ca/trusted 1/a/key"; strings.Join(got, " ") != want {
		t.Fatalf("entries %v, want %s", got, want)
	}
	for _, e := range entries {
		if e.Kind == keymanager.KindTrusted {
			if e.Usable || e.Key != nil || e.Reason == "" {
				t.Errorf("trusted entry: usable %v, key %v, reason %q", e.Usable, e.Key != nil, e.Reason)
			}
			continue
		}
		if !e.Usable || e.Key == nil {
			t.Fatalf("entry %q of builder %d: usable %v, reason %q", e.Alias, e.Builder, e.Usable, e.Reason)
		}
		leaf, err := x509.ParseCertificate(e.Chain[0])
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]*testca.Cert{"a": a.Cert, "b": b.Cert}[e.Alias]; !bytes.Equal(leaf.Raw, want.DER) {
			t.Errorf("entry %q has the chain of another", e.Alias)
		}
		if err := trial(t, &keymanager.Credential{Key: e.Key, Leaf: leaf}); err != nil {
			t.Errorf("entry %q: %v", e.Alias, err)
		}
	}
}
