// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	encodingasn1 "encoding/asn1"
	"errors"
	"math/big"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/cryptobyte/asn1"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// pbeParams are the parameters of PKCS#12's and JCEKS's own schemes.
type pbeParams struct {
	Salt       []byte
	Iterations *big.Int
}

// TestHostileFilesCostNothing: each is refused, by a type that says what it is,
// at a cost in memory that its size bounds, before any work.
func TestHostileFilesCostNothing(t *testing.T) {
	o := odd{t}
	key := func(iterations *big.Int, saltSize int) string {
		params := pbeParams{slices.Repeat([]byte("s"), saltSize), iterations}
		oid := encodingasn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 3}
		return string(sealedInfo(t, oid, params, make([]byte, 16)))
	}
	inStore := func(key string) string {
		return string(o.store([][]byte{o.bag(oidShroudedBag, []byte(key))}))
	}
	nested := tlv(asn1.SEQUENCE)
	for range 50 {
		nested = o.nested(nested)
	}
	jks := "\xfe\xed\xfe\xed\x00\x00\x00\x02"
	end := strings.Repeat("\x00", 20)
	var limit *LimitError
	var damaged *DamagedError
	for _, tt := range []struct {
		name, data string
		want       any
	}{
		{"deep-ber", strings.Repeat("\x30\x80", 100_000), &limit},
		{"length-of-2-gigabytes", "\x30\x84\x7f\xff\xff\xff\x02\x01\x03\x30\x80", &damaged},
		{"length-of-126-bytes", "\x30\xfe" + strings.Repeat("\xff", 200), &damaged},
		{"nested-safes", string(o.store([][]byte{nested})), &limit},
		{"too-many-bags", string(o.store(slices.Repeat([][]byte{o.bag("1.2", tlv(asn1.NULL))}, maxBags+1))), &limit},
		{"too-many-blocks", strings.Repeat("-----BEGIN X-----\n-----END X-----\n", maxBags+1), &limit},
		{"jks-count", jks + "\x7f\xff\xff\xff" + end, &limit},
		{"jks-count-within-limits", jks + "\x00\x00\x4e\x20" + end, &damaged},
		{"jks-key-length", jks + "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01a12345678\x7f\xff\xff\xff" + end, &damaged},
		{"jks-chain-length", jks + "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x01a12345678\x00\x00\x00\x01k\x7f\xff\xff\xff" + end, &damaged},
		{"jks-name", jks + "\x00\x00\x00\x01\x00\x00\x00\x02\x7f\xff" + strings.Repeat("a", 0x7fff) + end, &damaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			writeFile(t, path, tt.data)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(t.Context(), keymanager.Source{Paths: []string{path}, Store: value(storePassword)}, Limits{})
			runtime.ReadMemStats(&after)
			if !errors.As(err, tt.want) {
				t.Errorf("got %v, want %T", err, tt.want)
			}
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+32*len(tt.data)); got > most {
				t.Errorf("%d bytes of file: %d bytes allocated, want at most %d", len(tt.data), got, most)
			}
		})
	}
	// What is wrong with one key makes that key unusable and no other.
	for _, tt := range []struct {
		name, key string
		want      any
	}{
		{"iterations-none", key(big.NewInt(0), 8), &damaged},
		{"iterations-negative", key(big.NewInt(-1), 8), &damaged},
		{"iterations-above", key(big.NewInt(5_000_001), 8), &limit},
		{"iterations-64-bit", key(new(big.Int).Lsh(big.NewInt(1), 62), 8), &limit},
		{"iterations-1000-bit", key(new(big.Int).Lsh(big.NewInt(1), 1000), 8), &limit},
		{"salt", key(big.NewInt(1), maxSalt+1), &limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			writeFile(t, path, inStore(tt.key))
			s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)})
			if e := onlyKey(t, s); e.Usable || !e.Broken || !errors.As(e.Err, tt.want) {
				t.Errorf("got %v, want %T", e.Err, tt.want)
			}
		})
	}
}

// TestTypesPassForOneAnother: PKCS#12, JKS and JCEKS do, as in Java; PEM doesn't.
func TestTypesPassForOneAnother(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	for typ, opens := range map[string]bool{"": true, "auto": true, "pkcs12": true, "jks": true, "jceks": true, "pem": false} {
		src := s.source()
		src.Type = typ
		store, err := Open(t.Context(), src, Limits{})
		var wrong *FormatError
		switch {
		case opens && (err != nil || store.Format != PKCS12):
			t.Errorf("type %q: %v", typ, err)
		case !opens && (!errors.As(err, &wrong) || wrong.Want != Format(typ) || wrong.Got != "pkcs12"):
			t.Errorf("type %q: %v", typ, err)
		}
	}
}

// TestWipe: nothing private is left in the fields of a key.
func TestWipe(t *testing.T) {
	for _, typ := range []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519} {
		t.Run(string(typ), func(t *testing.T) {
			leaf := testca.SelfSigned(t, testca.Spec{Name: "leaf", Key: typ})
			signer, err := parseKey([]byte(keyDER(t, string(leaf.KeyPEM()))))
			if err != nil {
				t.Fatal(err)
			}
			secrets := privateParts(signer)
			Wipe(signer)
			if k, ok := signer.(ed25519.PrivateKey); ok && slices.ContainsFunc(k, func(c byte) bool { return c != 0 }) {
				t.Error("the seed is still there")
			}
			for i, part := range secrets {
				if slices.ContainsFunc(part, func(w big.Word) bool { return w != 0 }) {
					t.Errorf("part %d is still there", i)
				}
			}
		})
	}
}

// spyKey is a key that remembers what it handed out.
type spyKey struct {
	der  []byte
	seen [][]byte
}

func (*spyKey) encrypted() bool { return false }

// TestDecryptedBytesAreWiped: those of a proof, of a signature, and of a proof
// that fails.
func TestDecryptedBytesAreWiped(t *testing.T) {
	leaf, other := testca.SelfSigned(t, testca.Spec{Name: "leaf"}), testca.SelfSigned(t, testca.Spec{Name: "other"})
	der := []byte(keyDER(t, string(leaf.KeyPEM())))
	for name, cert := range map[string]*testca.Cert{"proof": leaf, "mismatch": other} {
		t.Run(name, func(t *testing.T) {
			spy := &spyKey{der: der}
			r := &reader{Store: &Store{}}
			e := r.addKey("a", spy, nil)
			e.pool = []*certificate{newCertificate(cert.DER)}
			e.claim(e.pool[0])
			if err := r.Prove(t.Context(), ProveOptions{}); err != nil {
				t.Fatal(err)
			}
			if e.Usable {
				if err := trySignature(e); err != nil {
					t.Fatal(err)
				}
			}
			if len(spy.seen) == 0 {
				t.Fatal("nothing was decrypted")
			}
			for _, b := range spy.seen {
				if slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
					t.Error("a decrypted key is left as it was")
				}
			}
		})
	}
}

func (k *spyKey) unseal(context.Context, password) ([]byte, error) {
	b := slices.Clone(k.der)
	k.seen = append(k.seen, b)
	return b, nil
}

// privateParts returns the words behind the private numbers of a key: Wipe is
// to clear them in place.
func privateParts(signer crypto.Signer) (parts [][]big.Word) {
	switch k := signer.(type) {
	case *rsa.PrivateKey:
		parts = append(parts, k.D.Bits(), k.Precomputed.Dp.Bits(), k.Precomputed.Dq.Bits(), k.Precomputed.Qinv.Bits())
		for _, p := range k.Primes {
			parts = append(parts, p.Bits())
		}
	case *ecdsa.PrivateKey:
		//lint:ignore SA1019 as in Wipe
		parts = append(parts, k.D.Bits())
	}
	return parts
}
