// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
	"github.com/tlsd/tlsd/internal/memsearch"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestTLSDNeverHoldsKeyOrPassword searches the memory of tlsd under handshakes,
// with each tier built in and as an executable of its own. That the search finds
// what is there is shown by the key process of the tiers that keep their keys.
func TestTLSDNeverHoldsKeyOrPassword(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	leaf := root.Issue(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.RSA2048})
	dir := t.TempDir()
	path, password := filepath.Join(dir, "server.p12"), "searched for "+root.Cert.SerialNumber.Text(36)
	testca.WritePKCS12(t, path, password, testca.StoreEntry{Alias: "w", Cert: leaf})
	args := []string{"--keystore", path, "--keystore-password-file", writeFile(t, filepath.Join(dir, "pass"), []byte(password))}
	for _, tier := range tiers {
		for form, extra := range map[string][]string{
			"builtin":  {"--keymanager", tier},
			"external": {"--keymanager", "x", "--plugin", "x=" + bin("tlsd-keymanager-"+tier)},
		} {
			t.Run(tier+"-"+form, func(t *testing.T) {
				d := start(t, append(args, extra...)...)
				checkMemory(t, d, leaf.Key, password, tier != "pkix")
			})
		}
	}
}

// TestTLSDNeverHoldsTheThrowAwayKey does the same for a tlsd that was given
// nothing and made its keystore itself.
func TestTLSDNeverHoldsTheThrowAwayKey(t *testing.T) {
	d := start(t)
	served(t, d, "localhost")
	dirs, err := filepath.Glob(filepath.Join(d.tmp, "tlsd-demo-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("directories %q, %v", dirs, err)
	}
	passwordFile := filepath.Join(dirs[0], "keystore.pass")
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		t.Fatal(err)
	}
	src := keymanager.Source{Paths: []string{filepath.Join(dirs[0], "keystore.p12")}, Store: keymanager.PasswordRef{File: passwordFile}}
	s, err := keystore.Open(t.Context(), src, keystore.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prove(t.Context(), keystore.ProveOptions{Keep: true}); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Entries, func(e *keystore.Entry) bool { return e.Usable })
	if i < 0 {
		t.Fatal("no usable entry")
	}
	key, err := s.Entries[i].Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkMemory(t, d, key, strings.TrimSpace(string(password)), true)
}

// checkMemory makes handshakes and searches front and key process.
func checkMemory(t *testing.T, d *daemon, key crypto.Signer, password string, keeps bool) {
	t.Helper()
	for range 10 {
		served(t, d, "w.test")
	}
	keys := memsearch.Of("key", key)
	if found := search(t, d.cmd.Process.Pid, append(slices.Clone(keys), memsearch.Secret{Name: "password", Bytes: []byte(password)})); len(found) > 0 {
		t.Errorf("the front holds %q", found)
	}
	children := childrenOf(d.cmd.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("key processes %v", children)
	}
	if keeps && len(search(t, children[0], keys)) == 0 {
		t.Error("the key process holds nothing of its key, so that the search shows nothing")
	}
}

func search(t *testing.T, pid int, secrets []memsearch.Secret) []string {
	t.Helper()
	found, err := memsearch.Search(pid, secrets)
	if os.IsPermission(err) && os.Getenv("CI") != "true" {
		t.Skip(err) // a key process is not dumpable, so that only root may
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}
