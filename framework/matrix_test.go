// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestEachTierServesEachKeyType by both versions, with keys in a child.
func TestEachTierServesEachKeyType(t *testing.T) {
	for _, tier := range testTiers() {
		for _, kt := range keyTypes() {
			t.Run(tier.Name+"/"+string(kt), func(t *testing.T) {
				k, root := openTier(t, tier.Name, kt)
				if d := k.Manager().Describe(); !d.Isolated || d.Name != tier.Name || d.PID == 0 {
					t.Errorf("running is %+v", d)
				}
				eachVersion(t, root, func(t *testing.T, version uint16, client *tls.Config) {
					e := shake(t, client, k.TLSConfig()).ok(t)
					if e.served.Tier != tier.Name || e.served.Alias != "server" || e.served.Generation == 0 {
						t.Errorf("served by %+v", e.served)
					}
				})
			})
		}
	}
}

func TestInProcessIsNotIsolated(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	c := root.Issue(t, testca.Spec{DNS: []string{"a.test"}})
	core, logged := observer.New(zap.InfoLevel)
	k, err := Open(t.Context(), Config{Tiers: testTiers(), Keystores: []keymanager.Source{storeOf(t, c)}, InProcess: true, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	said := logged.FilterMessage("key manager ready").All()
	if len(said) != 1 || !strings.HasPrefix(fmt.Sprint(said[0].ContextMap()["isolation"]), "not isolated") {
		t.Errorf("the log says %v", said)
	}
	shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t)
	if k.Tier() != "pkixcached" || k.Manager().Describe().Isolated {
		t.Errorf("%s, %+v", k.Tier(), k.Manager().Describe())
	}
}

// TestOtherExecutables runs a tier's own executable, in the place of this one
// and as a plugin.
func TestOtherExecutables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tlsd-keymanager-pkix")
	if out, err := exec.Command("go", "build", "-o", path, "../plugins/pkix/cmd/tlsd-keymanager-pkix").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	src := storeOf(t, root.Issue(t, testca.Spec{DNS: []string{"a.test"}}))
	for name, cfg := range map[string]Config{
		"executable": {KeyManager: "pkix", Executable: path},
		"plugin":     {Plugins: []Plugin{{Name: "mine", Path: path}}, KeyManager: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Keystores = []keymanager.Source{src}
			k, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			e := shake(t, clientOf(root, "a.test"), k.TLSConfig()).ok(t)
			if e.served.Tier != cfg.KeyManager {
				t.Errorf("served by %+v", e.served)
			}
		})
	}
}

// TestHandshakeOutlivesChange: a credential that was selected before a reload,
// or before the key process was killed, still signs.
func TestHandshakeOutlivesChange(t *testing.T) {
	k, root := openTier(t, "pkixcached", testca.P256)
	for name, change := range map[string]func() error{
		"reload": func() error { return k.Reload(t.Context()) },
		"kill":   func() error { return syscall.Kill(k.Manager().Describe().PID, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			eachVersion(t, root, func(t *testing.T, _ uint16, client *tls.Config) {
				server := k.TLSConfig()
				server.GetCertificate = func(info *tls.ClientHelloInfo) (*tls.Certificate, error) {
					cert, err := k.certificate(info)
					if err := change(); err != nil {
						t.Error(err)
					}
					return cert, err
				}
				shake(t, client, server).ok(t)
			})
		})
	}
}

func TestTrustIsReadByKeyProcess(t *testing.T) {
	k, root := openTier(t, "pkixcached", testca.P256)
	path := filepath.Join(t.TempDir(), "trust.p12")
	testca.WritePKCS12(t, path, password, testca.StoreEntry{Alias: "ca", Cert: root, Trusted: true})
	secret := keymanager.Secret(password)
	certs, err := k.Trust(t.Context(), TrustStore{Path: path, Password: keymanager.PasswordRef{Value: &secret}})
	if err != nil || len(certs) != 1 || !certs[0].Equal(root.Cert) {
		t.Errorf("trusted: %d, %v", len(certs), err)
	}
	if _, err := k.Trust(t.Context(), TrustStore{Path: path + "x"}); err == nil {
		t.Error("a missing trust store was read")
	}
}

// TestServerAnnouncesItself: what runs is said at the start.
func TestServerAnnouncesItself(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	src := storeOf(t, root.Issue(t, testca.Spec{DNS: []string{"a.test"}}))
	core, logs := observerCore()
	s, err := NewServer(t.Context(), Config{
		Tiers: testTiers(), Keystores: []keymanager.Source{src}, Log: zap.New(core),
		Listeners: []Listener{{Listen: "127.0.0.1:0", Alias: "server"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for msg, want := range map[string]map[string]any{
		"key manager ready": {"tier": "pkixcached", "isolation": "in a process of its own", "pid": int64(s.Keys().Manager().Describe().PID)},
		"keystore ready":    {"keystore": src.Name(), "entries": int64(1), "usable": int64(1)},
	} {
		lines := logs.FilterMessage(msg).All()
		if len(lines) != 1 {
			t.Errorf("%d lines %q, want 1", len(lines), msg)
			continue
		}
		for field, value := range want {
			if got := lines[0].ContextMap()[field]; got != value {
				t.Errorf("%q: %s = %v, want %v", msg, field, got, value)
			}
		}
	}
}
