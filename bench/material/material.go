// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package material makes what servers under test are given: a root, an
// intermediate and a leaf, as a PKCS#12 with as many entries as wanted and as
// PEM files.
package material

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// Name is the server name of the entry that is measured: the last one.
const Name = "bench.example"

// Password opens the PKCS#12 and each key in it.
const Password = "changeit"

// Iterations of each key derivation: keytool's.
const Iterations = 10_000

// Spec says what is made.
type Spec struct {
	Key     testca.KeyType // empty: P-256
	Entries int            // of the PKCS#12; 0: one
	Renewed bool           // make Files.Renewed too
}

// Files are paths below one directory. Certificates and keys are those of the
// entry that is called Name.
type Files struct {
	Store, PasswordFile string // PKCS#12
	Renewed             string // PKCS#12 with the same names, and other keys and certificates
	Cert, Key           string // PEM: chain without the root, key without password
	CA                  string // PEM: root
}

// Make writes files below dir, which must exist.
func Make(dir string, s Spec) (f Files, err error) {
	defer catch(&err)
	path := func(name string) string { return filepath.Join(dir, name) }
	f = Files{Store: path("server.p12"), PasswordFile: path("pass"), Cert: path("cert.pem"), Key: path("key.pem"), CA: path("ca.pem")}
	t := fatal{}
	root := testca.NewRoot(t, testca.Spec{Name: "bench root", Key: s.Key})
	issuer := root.Issue(t, testca.Spec{Name: "bench intermediate", Key: s.Key, IsCA: true})
	leaf := s.write(t, f.Store, issuer)
	if s.Renewed {
		f.Renewed = path("renewed.p12")
		s.write(t, f.Renewed, issuer)
	}
	testca.WritePEM(t, f.Cert, f.Key, leaf)
	if err := os.WriteFile(f.CA, root.CertPEM(), 0o600); err != nil {
		return f, err
	}
	return f, os.WriteFile(f.PasswordFile, []byte(Password), 0o600)
}

// write makes a keystore and returns its last entry.
func (s Spec) write(t testing.TB, path string, issuer *testca.Cert) *testca.Cert {
	entries := make([]testca.StoreEntry, max(s.Entries, 1))
	for i := range entries {
		name := Name
		if i < len(entries)-1 {
			name = fmt.Sprintf("host%d.example", i)
		}
		entries[i] = testca.StoreEntry{Alias: name, Cert: issuer.Issue(t, testca.Spec{Name: name, DNS: []string{name}, Key: s.Key})}
	}
	testca.PKCS12{Iterations: Iterations}.Write(t, path, Password, entries...)
	return entries[len(entries)-1].Cert
}

// fatal lets testca run outside a test: what would end the test is panicked
// with, and caught by Make. Other methods of a test are not used.
type fatal struct{ testing.TB }

func (fatal) Helper() {}

func (fatal) Fatal(args ...any) { panic(failure(fmt.Sprint(args...))) }

func (fatal) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

type failure string

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("make keystore: %s", string(r))
	default:
		panic(r)
	}
}
