// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"context"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/tlsd/tlsd/internal/testca"
)

// fuzzLimits keep one execution short: what is tested is the reading.
func fuzzLimits() Limits { return Limits{Iterations: 200} }

// openBytes does all that Open and Prove do, without files.
func openBytes(ctx context.Context, path string, data []byte) (*Store, error) {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return nil, err
	}
	s, err := Open(ctx, (&shop{path: path}).source(), fuzzLimits())
	if err != nil {
		return nil, err
	}
	return s, s.Prove(ctx, ProveOptions{})
}

// check is what holds of every reading: no panic and no hang are implied.
func check(t *testing.T, path string, data []byte) *Store {
	t.Helper()
	if len(data) == 0 || len(data) > 64<<10 {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := openBytes(ctx, path, data)
	if ctx.Err() != nil {
		t.Fatalf("does not end: %v", err)
	}
	if err != nil {
		return nil
	}
	seen := make(map[string]bool)
	for _, e := range s.Entries {
		if e.Alias == "" || seen[fold(e.Alias)] {
			t.Errorf("alias %q is empty or stands twice", e.Alias)
		}
		seen[fold(e.Alias)] = true
		if e.Usable == (e.Reason != "") {
			t.Errorf("usable %v with reason %q", e.Usable, e.Reason)
		}
		if e.Usable {
			if err := trySignature(e); err != nil {
				t.Errorf("usable, and signing fails: %v", err)
			}
		}
	}
	return s
}

// FuzzPKCS12 mutates stores of every make, their PBE and MAC parameters with
// them, and compares with go-pkcs12 where that opens the result.
func FuzzPKCS12(f *testing.F) {
	root := testca.NewRoot(f, testca.Spec{Name: "root"})
	leaf := root.Issue(f, testca.Spec{Name: "leaf"})
	for _, encoder := range encoders() {
		pw := storePassword
		if encoder == pkcs12.Passwordless {
			pw = ""
		} else {
			encoder = encoder.WithIterations(10)
		}
		data, err := encoder.Encode(leaf.Key, leaf.Cert, []*x509.Certificate{root.Cert}, pw)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(testca.PKCS12{Iterations: 10}.Encode(f, storePassword, testca.StoreEntry{Alias: "a", Cert: leaf},
		testca.StoreEntry{Cert: leaf}, testca.StoreEntry{Alias: "ca", Cert: root, Trusted: true}))
	f.Add(testca.PKCS12{Iterations: 10, PlainCerts: true}.Encode(f, storePassword, testca.StoreEntry{Alias: "a", Cert: leaf}))
	path := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, data []byte) {
		behindMAC(t, data)
		s := check(t, path, data)
		if s == nil || s.Format != PKCS12 {
			return
		}
		if _, err := samePKCS12(s, data, storePassword); err != nil {
			t.Errorf("go-pkcs12 opens it to something else: %v", err)
		}
	})
}

// behindMAC reads what the MAC, which nearly every mutation breaks, would keep
// from being read.
func behindMAC(t *testing.T, data []byte) {
	if len(data) == 0 || len(data) > 64<<10 {
		return
	}
	src := (&shop{}).source()
	r := &reader{Store: &Store{Format: PKCS12, src: src}, work: newBudget(fuzzLimits()), pw: readings([][]byte{[]byte(storePassword)})}
	content, macData, err := r.readPFX(data)
	if err != nil {
		return
	}
	_, _ = readMAC(macData, r.work)
	safes, err := r.readSafes(content)
	if err != nil {
		return
	}
	for i := range safes {
		if safes[i].scheme == nil {
			safes[i].bags, _ = r.readBags(safes[i].content, nil)
		}
	}
	if r.work.sum() == nil && r.openSafes(t.Context(), safes) == nil {
		r.collect(safes)
		r.assignAliases()
		_ = r.Prove(t.Context(), ProveOptions{})
	}
}

// FuzzJKS mutates JKS and, by its magic, JCEKS stores.
func FuzzJKS(f *testing.F) {
	root := testca.NewRoot(f, testca.Spec{Name: "root"})
	leaf := root.Issue(f, testca.Spec{Name: "leaf"})
	der, err := x509.MarshalPKCS8PrivateKey(leaf.Key)
	if err != nil {
		f.Fatal(err)
	}
	ks := keystore.New()
	cert := keystore.Certificate{Type: "X509", Content: leaf.DER}
	if err := ks.SetPrivateKeyEntry("a", keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: der, CertificateChain: []keystore.Certificate{cert}}, []byte(storePassword)); err != nil {
		f.Fatal(err)
	}
	if err := ks.SetTrustedCertificateEntry("b", keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: cert}); err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := ks.Store(&b, []byte(storePassword)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(append([]byte("\xce\xce\xce\xce"), b.Bytes()[4:]...))
	for _, stream := range []string{secretStream} {
		f.Add([]byte("\xce\xce\xce\xce\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\x00\x03aes" + stream + "12345678901234567890"))
	}
	path := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, path, data)
		// Nearly every mutation breaks the digest: look behind it too.
		if len(data) > 4 && len(data) < 64<<10 {
			r := &reader{Store: &Store{Format: JCEKS}, work: newBudget(fuzzLimits())}
			_ = r.readJKS(data)
		}
	})
}

// secretStream is a date and the begin of a serialised secret key.
const secretStream = "\x00\x00\x01\xa2\x2d\x23\x42\xae\xac\xed\x00\x05sr\x00\x03a.B\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01[\x00\x01ct\x00\x02[Bxpur\x00\x02[B\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00xp\x00\x00\x00\x02ab"

// FuzzPEM mutates PEM files with keys in every armour.
func FuzzPEM(f *testing.F) {
	leaf := testca.SelfSigned(f, testca.Spec{Name: "leaf"})
	cert, key := string(leaf.CertPEM()), string(leaf.KeyPEM())
	f.Add([]byte(cert + key))
	f.Add([]byte("\ufefftext\r\n" + key + cert))
	f.Add(leaf.DER)
	f.Add([]byte(keyDER(f, key)))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAAAAAAAAAAAAAAAAAAAA==\n-----END RSA PRIVATE KEY-----\n"))
	path := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, data []byte) { check(t, path, data) })
}
