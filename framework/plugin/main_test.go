// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// byGRPCOnly is the argument of a key process that is to take no lanes.
const byGRPCOnly = "-by-grpc-only"

// TestMain lets the test binary be a key process for the tiers of these tests.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, byGRPCOnly) {
		os.Unsetenv(lanesName)
	}
	if setup, ok := os.LookupEnv(endpointMarker); ok {
		os.Exit(mainEndpoint(setup))
	}
	Main(testTier(), rowdyTier())
	goleak.VerifyTestMain(m)
}

// testSettings make the tier of these tests misbehave.
type testSettings struct {
	Panic string `json:"panic"` // the method that does: open, select, list, reload, sign
	Say   string `json:"say"`   // written to standard output and error by open
	Hide  bool   `json:"hide"`  // list returns nothing
	Plain bool   `json:"plain"` // leave to the SDK what may be left
	Env   bool   `json:"env"`   // write the environment's names to standard error
}

// testTier is a tier that serves PEM pairs, each builder one, the first by
// default and others by server name.
func testTier() keymanager.Tier {
	return keymanager.Tier{Name: "test", Open: openTest, FilesOnly: true}
}

func openTest(_ context.Context, env keymanager.Env) (keymanager.KeyManager, error) {
	m := &testManager{env: env}
	if err := json.Unmarshal(env.Settings, &m.set); err != nil && len(env.Settings) > 0 {
		return nil, fmt.Errorf("settings: %w", err)
	}
	m.trip("open")
	if m.set.Say != "" {
		fmt.Println(m.set.Say, "by os.Stdout")
		fmt.Fprintln(os.Stderr, m.set.Say, "by os.Stderr")
		_, _ = os.NewFile(1, "fd 1").WriteString(m.set.Say + " by descriptor 1\n")
	}
	if m.set.Env {
		for _, kv := range os.Environ() {
			name, _, _ := strings.Cut(kv, "=")
			fmt.Fprintln(os.Stderr, "environment has", name)
		}
	}
	if err := m.Reload(context.Background()); err != nil {
		return nil, err
	}
	env.Logger().Debug("open at debug")
	return m, nil
}

type testManager struct {
	env   keymanager.Env
	set   testSettings
	pairs atomic.Pointer[[]tls.Certificate]
}

func (m *testManager) trip(where string) {
	if m.set.Panic == where {
		panic("tripped at " + where)
	}
}

func (m *testManager) Reload(context.Context) error {
	if m.pairs.Load() != nil {
		m.trip("reload")
	}
	var pairs []tls.Certificate
	for _, src := range m.env.Builders {
		if len(src.Paths) != 2 {
			return errors.New("a builder is a certificate and a key")
		}
		pair, err := tls.LoadX509KeyPair(src.Paths[0], src.Paths[1])
		if err != nil {
			return fmt.Errorf("open keystore %q: %w", src.Name(), err)
		}
		pairs = append(pairs, pair)
	}
	m.pairs.Store(&pairs)
	return nil
}

func (m *testManager) Select(_ context.Context, h *keymanager.Hello) (*keymanager.Credential, error) {
	m.trip("select")
	pairs := *m.pairs.Load()
	for i, p := range pairs {
		if h.ServerName == "" || p.Leaf.VerifyHostname(h.ServerName) == nil {
			c := &keymanager.Credential{Builder: i, Alias: "pair", Chain: p.Certificate, Leaf: p.Leaf, Key: m.key(p)}
			if m.set.Plain {
				c.Leaf = nil
			}
			return c, nil
		}
	}
	return nil, keymanager.ErrNoCredential
}

func (m *testManager) List(context.Context) ([]keymanager.Entry, error) {
	m.trip("list")
	if m.set.Hide {
		return nil, nil
	}
	var entries []keymanager.Entry
	for i, p := range *m.pairs.Load() {
		entries = append(entries, keymanager.Entry{
			Builder: i, Alias: "pair", Kind: keymanager.KindKey, Chain: p.Certificate, Key: m.key(p), Usable: true,
		})
	}
	return entries, nil
}

func (m *testManager) key(p tls.Certificate) keymanager.Key {
	k := keymanager.FromSigner(p.PrivateKey.(crypto.Signer))
	if m.set.Panic == "sign" {
		return trippingKey{k}
	}
	return k
}

type trippingKey struct{ keymanager.Key }

func (trippingKey) Sign(context.Context, *keymanager.SignRequest) ([]byte, error) {
	panic("tripped at sign")
}

// pairSource writes a certificate for name and its key, and returns them as a
// builder.
func pairSource(t testing.TB, ca *testca.Cert, name string) (keymanager.Source, *testca.Cert) {
	t.Helper()
	dir := t.TempDir()
	src := keymanager.Source{Paths: []string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}}
	leaf := ca.Issue(t, testca.Spec{Name: name, DNS: []string{name}})
	testca.WritePEM(t, src.Paths[0], src.Paths[1], leaf)
	return src, leaf
}
