// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// password is that of the keystores made by tests.
const password = "correct horse battery"

// writeStore writes a PKCS#12 keystore and its password, and returns it as a
// source.
func writeStore(t testing.TB, password string, entries ...testca.StoreEntry) keymanager.Source {
	t.Helper()
	dir := t.TempDir()
	src := keymanager.Source{
		Paths: []string{filepath.Join(dir, "server.p12")},
		Store: keymanager.PasswordRef{File: filepath.Join(dir, "server.pass")},
	}
	testca.WritePKCS12(t, src.Paths[0], password, entries...)
	if err := os.WriteFile(src.Store.File, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return src
}

// storeOf is writeStore with one entry.
func storeOf(t testing.TB, c *testca.Cert) keymanager.Source {
	t.Helper()
	return writeStore(t, password, testca.StoreEntry{Alias: "server", Cert: c})
}

// openTier runs the tier over a keystore with an entry for a.test, and returns
// the root.
func openTier(t testing.TB, tier string, kt testca.KeyType) (*Keys, *testca.Cert) {
	t.Helper()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	c := root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}, Key: kt})
	k, err := Open(t.Context(), Config{
		KeyManager: tier, Tiers: testTiers(), Keystores: []keymanager.Source{storeOf(t, c)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, root
}

// forgetful is the configuration of a program that embeds a tier and doesn't
// call plugin.Main.
func forgetful(tier string) Config {
	t := pkixcached.Tier()
	t.Name = tier
	return Config{Tiers: []keymanager.Tier{t}}
}

// TestForgottenMain runs in the child, too, of a test program that forgets: the
// child's opening is refused, so that nothing more is started.
func TestForgottenMain(t *testing.T) {
	if childOf() != "" {
		if _, err := Open(t.Context(), forgetful(childOf())); !errors.Is(err, errForgotMain) {
			t.Errorf("error = %v, want %v", err, errForgotMain)
		}
		return
	}
	for _, tier := range []string{tierForgets, tierForgetTest} {
		t.Run(tier, func(t *testing.T) {
			k, err := Open(t.Context(), forgetful(tier))
			if err == nil {
				k.Close()
				t.Fatal("a program that can't be a key process was opened")
			}
			if !strings.Contains(err.Error(), "plugin.Main") {
				t.Errorf("error %q doesn't name the call", err)
			}
		})
	}
}

func TestOpenErrorsSayWhatToDo(t *testing.T) {
	tier := func(name string) keymanager.Tier {
		return keymanager.Tier{Name: name, Open: func(context.Context, keymanager.Env) (keymanager.KeyManager, error) {
			return nil, errors.New("not to be opened")
		}}
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no-key-manager", Config{}, "no key manager: set Tiers or Plugins"},
		{"unknown", Config{KeyManager: "pkcs11", Tiers: []keymanager.Tier{tier("pkix"), tier("sunx509")}}, `key manager "pkcs11" is not known: there is pkix, sunx509`},
		{"no-default", Config{Tiers: []keymanager.Tier{tier("a"), tier("b")}}, "set KeyManager to one of a, b"},
		{"same-name", Config{Tiers: []keymanager.Tier{tier("a")}, Plugins: []Plugin{{Name: "a", Path: "/p"}}}, `plugin "a" has the name of another plugin or of a built-in tier`},
		{"tier-twice", Config{Tiers: []keymanager.Tier{tier("a"), tier("a")}}, `"a" is there twice`},
		{"plugin-without-path", Config{Plugins: []Plugin{{Name: "a"}}}, "a plugin needs Name and Path"},
		{"both-ways", Config{Tiers: []keymanager.Tier{tier("a")}, InProcess: true, Executable: "/p"}, "exclude each other"},
		{"plugin-in-process", Config{Plugins: []Plugin{{Name: "a", Path: "/p"}}, InProcess: true}, `plugin "a" can't run in this process`},
		{"keystore-without-path", Config{Tiers: []keymanager.Tier{tier("a")}, Keystores: []keymanager.Source{{}}}, "Keystores[0]"},
		{"negative", Config{Tiers: []keymanager.Tier{tier("a")}, Drain: -1}, "Drain is negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(t.Context(), tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDefaultTier(t *testing.T) {
	for _, tt := range []struct {
		tiers, want string
	}{
		{"sunx509 pkix pkixcached", "pkixcached"},
		{"sunx509 pkix", "pkix"},
		{"sunx509 other", "sunx509"},
		{"other", "other"},
	} {
		var c Config
		for name := range strings.FieldsSeq(tt.tiers) {
			c.Tiers = append(c.Tiers, keymanager.Tier{Name: name})
		}
		if got, err := c.pick(); err != nil || got.name != tt.want {
			t.Errorf("of %s: %q, %v, want %q", tt.tiers, got.name, err, tt.want)
		}
	}
}

func TestListenerErrorsSayWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name string
		l    Listener
		want string
	}{
		{"address", Listener{Listen: "8443"}, `listener "8443": not an address: write host:port or unix:PATH`},
		{"socket", Listener{Listen: "unix:"}, "write unix:PATH"},
		{"old-version", Listener{MinVersion: tls.VersionTLS11}, "min_version TLS 1.1 can't be served"},
		{"no-version", Listener{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12}, "no version is left"},
		{"rsa-key-exchange", Listener{CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}}, "TLS_RSA_WITH_AES_128_GCM_SHA256 can't be chosen"},
		{"suite", Listener{CipherSuites: []uint16{1}}, "suite 0x0001 is not known"},
		{"group", Listener{Groups: []uint16{1}}, "group 0x0001 is not known"},
		{"empty_alpn", Listener{ALPN: []string{"h2", ""}}, `alpn "": a protocol's name has 1 to 255 bytes`},
		{"double_alpn", Listener{ALPN: []string{"h2", "h2"}}, `alpn "h2" is there twice`},
		{"client-auth", Listener{ClientAuth: "want"}, `"want" is not one of none, optional, require`},
		{"client-ca", Listener{ClientAuth: ClientAuthRequire}, "--client-ca PATH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.l.Listen == "" {
				tt.l.Listen = "127.0.0.1:0"
			}
			_, err := NewServer(t.Context(), Config{Listeners: []Listener{tt.l}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}
