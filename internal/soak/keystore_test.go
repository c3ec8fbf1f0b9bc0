// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// keystore is a PKCS#12 file whose entry is another at each rotation.
type keystore struct {
	t              *testing.T
	path, password string
	root           *testca.Cert

	mu        sync.Mutex
	published map[string]int // raw certificates, by when they came
	times     []time.Time    // when each came
}

const password = "changeit"

func newKeystore(t *testing.T) *keystore {
	t.Helper()
	dir := t.TempDir()
	k := &keystore{
		t: t, path: filepath.Join(dir, "server.p12"), password: filepath.Join(dir, "pass"),
		root: testca.NewRoot(t, testca.Spec{Name: "soak CA"}), published: map[string]int{},
	}
	if err := os.WriteFile(k.password, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	k.rotate()
	return k
}

// rotate puts a new key and certificate in the place of the old, by a rename.
func (k *keystore) rotate() {
	c := k.root.Issue(k.t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	testca.WritePKCS12(k.t, k.path+".new", password, testca.StoreEntry{Alias: "w", Cert: c})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := os.Rename(k.path+".new", k.path); err != nil {
		k.t.Error(err)
	}
	k.published[string(c.DER)] = len(k.times)
	k.times = append(k.times, time.Now())
}

// grace is how long a certificate may still be served after the next one came:
// while the key process is frozen nobody reads the new one.
const grace = 30 * time.Second

// check tells what is wrong with being served leaf in a handshake that began then.
func (k *keystore) check(leaf *x509.Certificate, began time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.published[string(leaf.Raw)]
	switch {
	case !ok:
		return fmt.Errorf("a certificate that was never there: %v", leaf.Subject)
	case n+1 < len(k.times) && began.Sub(k.times[n+1]) > grace:
		return fmt.Errorf("certificate %d, %v after the next one came", n, began.Sub(k.times[n+1]))
	}
	return nil
}
