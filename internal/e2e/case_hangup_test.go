// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseR10_NewKeystoreAtHangUp: it is served to who comes, and who is there
// stays, with their session.
func TestCaseR10_NewKeystoreAtHangUp(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			root := rootOf(t, testca.P256)
			s := storeWith(t, issue(t, root, testca.Spec{Name: "old"}))
			lines := listenOn(t, "tcp", "127.0.0.1:0")
			echoLines(t, lines)
			d := start(t, append(s.args(), "--keymanager", tier, "--backend", "tcp://"+lines.Addr().String())...)
			resuming := clientOf(s)
			resuming.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			open := d.openLine(resuming)
			open.mustWork() // and reads the ticket
			for _, name := range []string{"new", "newer"} {
				testca.WritePKCS12(t, s.path, "changeit", entry(issue(t, root, testca.Spec{Name: name})))
				syscall.Kill(d.cmd.Process.Pid, syscall.SIGHUP)
				awaitServed(t, d, "w.test", name)
				open.mustWork()
			}
			again := d.openLine(resuming)
			if again.mustWork(); !again.c.ConnectionState().DidResume {
				t.Error("the session did not survive")
			}
		})
	}
}

// TestCaseK11_AliasVanishesAtHangUp: the tier that looks at nothing but what it is
// told keeps it too.
func TestCaseK11_AliasVanishesAtHangUp(t *testing.T) {
	t.Parallel()
	root := rootOf(t, testca.P256)
	a, b := entry(issue(t, root, testca.Spec{Name: "a"})), entry(issue(t, root, testca.Spec{Name: "b"}))
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			s := storeWith(t, a.Cert, b.Cert)
			d := start(t, append(s.args(), "--keymanager", tier, "--alias", "B")...)
			checkServed(t, d, "w.test", "b")
			testca.WritePKCS12(t, s.path, "changeit", a)
			syscall.Kill(d.cmd.Process.Pid, syscall.SIGHUP)
			d.awaitLines(1, `"level":"error"`, `no entry with alias \"B\"`)
			checkServed(t, d, "w.test", "b")
			next := issue(t, root, testca.Spec{Name: "b2"})
			testca.WritePKCS12(t, s.path, "changeit", a, testca.StoreEntry{Alias: "b", Cert: next})
			syscall.Kill(d.cmd.Process.Pid, syscall.SIGHUP)
			awaitServed(t, d, "w.test", "b2")
		})
	}
}

// TestCaseR09_DefaultPeriod of looking for changes that no event tells of, without
// a word of it in the configuration.
func TestCaseR09_DefaultPeriod(t *testing.T) {
	t.Parallel()
	root, path := rootOf(t, testca.P256), filepath.Join(t.TempDir(), "ks.pem")
	content := func(name string) []byte {
		c := issue(t, root, testca.Spec{Name: name})
		b := append(c.CertPEM(), c.KeyPEM()...)
		return append(b, bytes.Repeat([]byte{'\n'}, 4096-len(b))...)
	}
	d := start(t, "--keystore", writeFile(t, path, content("old")))
	checkServed(t, d, "w.test", "old")
	silently(t, path, content("new"))
	for end := time.Now().Add(30 * time.Second); served(t, d, "w.test").Subject.CommonName != "new"; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not served within 30 s\n%s", d.log)
		}
	}
}
