// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// samePKCS12 compares the one key of data, and its chain, with what go-pkcs12
// makes of it. Where that cannot open the file there is nothing to compare.
func samePKCS12(s *Store, data []byte, password string) (compared bool, err error) {
	key, leaf, cas, err := pkcs12.DecodeChain(data, password)
	if err != nil {
		return false, nil
	}
	theirs, ok := key.(crypto.Signer)
	if !ok || !samePublic(theirs.Public(), leaf.PublicKey) {
		return false, nil // a key without a use, or a leaf that is not the key's: known faults of theirs
	}
	keys, _ := kinds(s)
	if len(keys) != 1 {
		return true, fmt.Errorf("%d keys", len(keys))
	}
	e := keys[0]
	if usableType(theirs.Public()) != nil {
		if e.Usable || e.Broken {
			return true, fmt.Errorf("verdict on a key of no use: %q", e.Reason)
		}
		return true, nil
	}
	if !e.Usable {
		return true, errors.New(e.Reason)
	}
	return true, sameKeyAndChain(e, theirs, leaf, cas)
}

func sameKeyAndChain(e *Entry, theirs crypto.Signer, leaf *x509.Certificate, cas []*x509.Certificate) error {
	ours, err := e.Signer(context.Background())
	if err != nil {
		return err
	}
	if !ours.(interface{ Equal(crypto.PrivateKey) bool }).Equal(theirs) {
		return errors.New("another private key")
	}
	if !bytes.Equal(e.Leaf().RawSubjectPublicKeyInfo, leaf.RawSubjectPublicKeyInfo) {
		return errors.New("another leaf")
	}
	for _, der := range e.Chain {
		known := slices.ContainsFunc(append(cas, leaf), func(c *x509.Certificate) bool { return bytes.Equal(c.Raw, der) })
		if !known {
			return errors.New("a certificate of the chain is not in the file")
		}
	}
	return nil
}

// TestSameAsGoPKCS12OnRealStores: each store of the collection that go-pkcs12
// opens, we open to the same key and certificates.
func TestSameAsGoPKCS12OnRealStores(t *testing.T) {
	n := 0
	for _, row := range readCorpus(t) {
		if row.format != "pkcs12" || row.expect == "refuse" || row.expect == "policy" {
			continue // refused ones are TestCorpus's; some would keep go-pkcs12 busy for minutes
		}
		data, err := os.ReadFile(filepath.Join(corpusDir, row.file))
		if err != nil {
			t.Fatal(err)
		}
		s, err := row.open(t.Context())
		if err != nil {
			continue // TestCorpus has judged that
		}
		compared, err := samePKCS12(s, data, row.password)
		if err != nil {
			t.Errorf("%s: %v", row.file, err)
		}
		if compared {
			n++
		}
	}
	t.Logf("%d stores compared", n)
	if n < 150 {
		t.Errorf("only %d stores compared", n)
	}
}

// encoders are go-pkcs12's.
func encoders() map[string]*pkcs12.Encoder {
	return map[string]*pkcs12.Encoder{
		"legacy-rc2":   pkcs12.LegacyRC2,
		"legacy-des":   pkcs12.LegacyDES,
		"modern-2023":  pkcs12.Modern2023,
		"modern-2026":  pkcs12.Modern2026,
		"passwordless": pkcs12.Passwordless,
	}
}

// TestStoresOfGoPKCS12: what each of its encoders writes, for each key type.
func TestStoresOfGoPKCS12(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	for name, encoder := range encoders() {
		for _, typ := range []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519} {
			t.Run(fmt.Sprintf("%s-%s", name, typ), func(t *testing.T) {
				leaf := root.Issue(t, testca.Spec{Name: "leaf", Key: typ})
				pw := "päss"
				if encoder == pkcs12.Passwordless {
					pw = ""
				}
				data, err := encoder.Encode(leaf.Key, leaf.Cert, []*x509.Certificate{root.Cert}, pw)
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "store")
				writeFile(t, path, string(data))
				s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(pw)})
				if compared, err := samePKCS12(s, data, pw); err != nil || !compared {
					t.Errorf("compared %v, %v", compared, err)
				}
			})
		}
	}
}

// TestStoresOfKeystoreGo: JKS as that library writes it, keys with passwords of
// their own, names in any case and script.
func TestStoresOfKeystoreGo(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	ks := keystore.New(keystore.WithOrderedAliases(), keystore.WithCaseExactAliases())
	src := keymanager.Source{Store: value(storePassword)}
	aliases := []string{"A", "a", "schlüssel", "鍵🔑"}
	for i, alias := range aliases {
		leaf := root.Issue(t, testca.Spec{Name: alias, Key: testca.RSA2048})
		der, err := x509.MarshalPKCS8PrivateKey(leaf.Key)
		if err != nil {
			t.Fatal(err)
		}
		own := fmt.Sprintf("password %d", i)
		entry := keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: der,
			CertificateChain: []keystore.Certificate{{Type: "X509", Content: leaf.DER}, {Type: "X509", Content: root.DER}}}
		if err := ks.SetPrivateKeyEntry(alias, entry, []byte(own)); err != nil {
			t.Fatal(err)
		}
		name := alias
		if alias == "a" {
			name = "a-2" // equal but for case
		}
		src.Keys = append(src.Keys, keymanager.KeyPassword{Alias: name, Password: value(own)})
	}
	var b bytes.Buffer
	if err := ks.Store(&b, []byte(storePassword)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store")
	writeFile(t, path, b.String())
	src.Paths = []string{path}
	s := mustProve(t, src)
	if len(s.Entries) != len(aliases) || len(s.Warnings) != 1 {
		t.Fatalf("%d entries, warnings %q", len(s.Entries), s.Warnings)
	}
	for i, e := range s.Entries {
		if want := src.Keys[i].Alias; e.Alias != want || !e.Usable || len(e.Chain) != 2 {
			t.Errorf("entry %q, want %q: %s", e.Alias, want, e.Reason)
		}
	}
}
