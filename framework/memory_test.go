// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/memsearch"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestFrontNeverHoldsKeyOrPassword searches the memory of front and key process
// under handshakes. That the search finds what is there is shown by the key
// process of a tier that keeps its keys.
func TestFrontNeverHoldsKeyOrPassword(t *testing.T) {
	for tier, keeps := range map[string]bool{"sunx509": true, "pkix": false, "pkixcached": true} {
		t.Run(tier, func(t *testing.T) {
			root := testca.NewRoot(t, testca.Spec{Name: "root"})
			var secrets []memsearch.Secret
			var entries []testca.StoreEntry
			for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.Ed25519} {
				name := strings.ToLower(string(kt)) + ".test"
				c := root.Issue(t, testca.Spec{DNS: []string{name}, Key: kt})
				entries = append(entries, testca.StoreEntry{Alias: name, Cert: c})
				secrets = append(secrets, memsearch.Of(name, c.Key)...)
			}
			password := "searched for " + root.Cert.SerialNumber.Text(36)
			src := writeStore(t, password, entries...)
			front, ready := startFront(t, frontSpec{Tier: tier, Path: src.Paths[0], Password: src.Store.File})
			for _, e := range entries {
				for range 10 {
					askFor(t, ready.Addr, e.Alias)
				}
			}
			if found := search(t, front.Pid, append(secrets, memsearch.Secret{Name: "password", Bytes: []byte(password)})); len(found) > 0 {
				t.Errorf("the front holds %v", found)
			}
			found := search(t, ready.KeyPID, secrets)
			for _, e := range entries {
				ofEntry := func(s string) bool { return strings.HasPrefix(s, e.Alias) }
				if keeps && !slices.ContainsFunc(found, ofEntry) {
					t.Errorf("the key process holds nothing of %s, so that the search shows nothing", e.Alias)
				}
			}
		})
	}
}

// askFor makes a connection with that SNI. Which certificate comes is not looked
// at: sunx509 doesn't look at names.
func askFor(t *testing.T, addr, name string) {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
}

// search returns the names of the secrets that are in the memory of a process.
func search(t *testing.T, pid int, secrets []memsearch.Secret) []string {
	t.Helper()
	found, err := memsearch.Search(pid, secrets)
	if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skip(err) // a key process is not dumpable, so that only root may
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}
