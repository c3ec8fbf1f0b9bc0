// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/des"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// fuzzLimits keep one execution short: what is tested is the reading.
func fuzzLimits() Limits { return Limits{Iterations: 200} }

// openBytes does all that Open and Prove do.
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
	plain := testca.PKCS12{Iterations: 150, PlainCerts: true}.Encode(f, storePassword, testca.StoreEntry{Alias: "a", Cert: leaf}) // 150: near the limit
	f.Add(plain)
	f.Add(indefinite(f, plain))
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

// FuzzJKS mutates JKS stores.
func FuzzJKS(f *testing.F) { fuzzJava(f, "\xfe\xed\xfe\xed", protectJKS) }

// FuzzJCEKS mutates JCEKS stores, the parameters of their encryption with them.
func FuzzJCEKS(f *testing.F) {
	f.Add(sealJava("\xce\xce\xce\xce\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\x00\x03aes" + secretStream))
	fuzzJava(f, "\xce\xce\xce\xce", protectJCEKS)
}

func fuzzJava(f *testing.F, magic string, protect func(f *testing.F, der []byte) []byte) {
	root := testca.NewRoot(f, testca.Spec{Name: "root"})
	leaf := root.Issue(f, testca.Spec{Name: "leaf"})
	key := protect(f, []byte(keyDER(f, string(leaf.KeyPEM()))))
	const head = "\x00\x00\x00\x02\x00\x00\x00\x02"
	seed := sealJava(magic + head +
		"\x00\x00\x00\x01" + javaText("a") + "12345678" + javaBlock(key) + "\x00\x00\x00\x01" + javaText("X.509") + javaBlock(leaf.DER) +
		"\x00\x00\x00\x02" + javaText("b") + "12345678" + javaText("X.509") + javaBlock(root.DER))
	path := filepath.Join(f.TempDir(), "store")
	if s, err := openBytes(f.Context(), path, seed); err != nil || len(s.Entries) != 2 || !s.Entries[0].Usable {
		f.Fatalf("the seed is no good: %v", err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, path, data)
		// Nearly every mutation breaks the digest: look behind it too.
		if len(data) > sha1.Size {
			check(t, path, sealJava(string(data[:len(data)-sha1.Size])))
		}
	})
}

func javaText(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }

func javaBlock(b []byte) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(b)))) + string(b)
}

// sealJava adds the digest under the store's password.
func sealJava(content string) []byte {
	h := sha1.New()
	h.Write(toUTF16([]rune(storePassword)))
	h.Write([]byte(jksSalt + content))
	return h.Sum([]byte(content))
}

// protectJKS protects a key as Sun's key protector does.
func protectJKS(f *testing.F, der []byte) []byte {
	pw, salt := toUTF16([]rune(storePassword)), bytes.Repeat([]byte("s"), sha1.Size)
	check := newJKSCheck(pw, der)
	jksXOR(der, pw, salt)
	return sealedInfo(f, asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}, nil, slices.Concat(salt, der, check))
}

// protectJCEKS encrypts a key as JCEKS does, with few iterations.
func protectJCEKS(f *testing.F, der []byte) []byte {
	const iterations = 20
	salt := []byte("saltsalt")
	out, err := deriveJCEKS(f.Context(), []byte(storePassword), salt, iterations)
	if err != nil {
		f.Fatal(err)
	}
	block, err := des.NewTripleDESCipher(out[:24])
	if err != nil {
		f.Fatal(err)
	}
	pad := des.BlockSize - len(der)%des.BlockSize
	der = append(der, bytes.Repeat([]byte{byte(pad)}, pad)...)
	cipher.NewCBCEncrypter(block, out[24:]).CryptBlocks(der, der)
	params := struct {
		Salt       []byte
		Iterations int
	}{salt, iterations}
	return sealedInfo(f, asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 19, 1}, params, der)
}

// sealedInfo returns an EncryptedPrivateKeyInfo.
func sealedInfo(f testing.TB, oid asn1.ObjectIdentifier, params any, ciphertext []byte) []byte {
	info := struct {
		Algorithm  pkix.AlgorithmIdentifier
		Ciphertext []byte
	}{pkix.AlgorithmIdentifier{Algorithm: oid}, ciphertext}
	if params != nil {
		der, err := asn1.Marshal(params)
		if err != nil {
			f.Fatal(err)
		}
		info.Algorithm.Parameters = asn1.RawValue{FullBytes: der}
	}
	der, err := asn1.Marshal(info)
	if err != nil {
		f.Fatal(err)
	}
	return der
}

// secretStream is a date and a serialised secret key.
const secretStream = "\x00\x00\x01\xa2\x2d\x23\x42\xae\xac\xed\x00\x05sr\x00\x03a.B\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01[\x00\x01ct\x00\x02[Bxpur\x00\x02[B\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00xp\x00\x00\x00\x02ab"

// FuzzPEM mutates PEM files with keys in every armour, and the parameters of
// encrypted ones with them.
func FuzzPEM(f *testing.F) {
	leaf := testca.SelfSigned(f, testca.Spec{Name: "leaf"})
	cert, key := string(leaf.CertPEM()), string(leaf.KeyPEM())
	f.Add([]byte(cert + key))
	f.Add([]byte("\ufefftext\r\n" + key + cert))
	f.Add(leaf.DER)
	f.Add([]byte(keyDER(f, key)))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAAAAAAAAAAAAAAAAAAAA==\n-----END RSA PRIVATE KEY-----\n"))
	for _, encoder := range encoders() {
		if encoder == pkcs12.Passwordless {
			continue
		}
		for _, prf := range []byte{7, 8, 9, 10, 11} { // HMAC with SHA-1, 224, 256, 384, 512
			der := bytes.Replace(shrouded(f, encoder, leaf), []byte("\x86\xf7\x0d\x02\x09"), []byte{0x86, 0xf7, 0x0d, 0x02, prf}, 1)
			f.Add(der)
			f.Add(append([]byte(cert), pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})...))
		}
	}
	path := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, data []byte) { check(t, path, data) })
}

// shrouded returns the encrypted PKCS#8 key of a store that go-pkcs12 writes.
func shrouded(f *testing.F, encoder *pkcs12.Encoder, leaf *testca.Cert) (key []byte) {
	data, err := encoder.WithIterations(10).Encode(leaf.Key, leaf.Cert, nil, storePassword)
	if err != nil {
		f.Fatal(err)
	}
	r := &reader{Store: &Store{}, work: newBudget(fuzzLimits())}
	content, _, err := r.readPFX(data)
	if err != nil {
		f.Fatal(err)
	}
	safes, err := r.readSafes(content)
	if err != nil {
		f.Fatal(err)
	}
	err = walkBags(safes[1].content, func(_ string, value, _ cryptobyte.String) error {
		key = value
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return key
}

// FuzzGoPKCS12 has go-pkcs12 write stores of every make under any password,
// and compares what it and we read of them.
func FuzzGoPKCS12(f *testing.F) {
	f.Add("", uint8(0), uint8(1), uint8(0))
	f.Add("päss wörd", uint8(1), uint8(20), uint8(1))
	f.Add("鍵", uint8(2), uint8(255), uint8(2))
	root := testca.NewRoot(f, testca.Spec{Name: "root"})
	middle := root.Issue(f, testca.Spec{Name: "middle", IsCA: true})
	var leaves []*testca.Cert
	for _, typ := range []testca.KeyType{testca.P256, testca.P384, testca.P521, testca.Ed25519, testca.RSA2048} {
		leaves = append(leaves, middle.Issue(f, testca.Spec{Name: "leaf", Key: typ}))
	}
	makes := []*pkcs12.Encoder{pkcs12.LegacyRC2, pkcs12.LegacyDES, pkcs12.Modern2023, pkcs12.Modern2026}
	path := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, pw string, kind, iterations, cas uint8) {
		if !utf8.ValidString(pw) {
			return // it takes U+FFFD for what is no text, and we Latin-1
		}
		if !utf8.ValidString(pw) {
			return // Latin-1 to us, replacement characters to go-pkcs12
		}
		leaf := leaves[int(kind)%len(leaves)]
		encoder := makes[int(kind)/len(leaves)%len(makes)].WithIterations(int(iterations) + 1)
		chain := []*x509.Certificate{middle.Cert, root.Cert}[:int(cas)%3]
		data, err := encoder.Encode(leaf.Key, leaf.Cert, chain, pw)
		if err != nil {
			return // a password that it can't take
		}
		writeFile(t, path, string(data))
		s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(pw)})
		compared, err := samePKCS12(s, data, pw)
		if err != nil || !compared || len(s.Entries[0].Chain) != 1+len(chain) {
			t.Errorf("compared %v, %v; chain of %d", compared, err, len(s.Entries[0].Chain))
		}
	})
}
