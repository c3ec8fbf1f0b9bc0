// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"cmp"
	"context"
	stdpbkdf2 "crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"math"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPBKDF2EqualsStandardLibrary over hashes, lengths and counts.
func TestPBKDF2EqualsStandardLibrary(t *testing.T) {
	for name, h := range map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384} {
		for _, size := range []int{1, 20, 24, 32, 64, 100} {
			for _, iterations := range []int{1, 2, 1500} {
				pw, salt := []byte("pass\x00word"), []byte("salt")
				got, err := pbkdf2(context.Background(), h, pw, salt, iterations, size)
				if err != nil {
					t.Fatal(err)
				}
				want, err := stdpbkdf2.Key(h, string(pw), salt, iterations, size)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s, %d bytes, %d iterations: differs", name, size, iterations)
				}
			}
		}
	}
}

// TestKDF12 uses known answers for SHA-1 ("smeg", "queeg"), long in use to test
// other implementations.
func TestKDF12(t *testing.T) {
	tests := []struct {
		name, pw, salt, want string
		purpose              byte
		iterations           int
	}{
		{"key", "smeg", "0a58cf64530d823f", "8aaae6297b6cb04642ab5b077851284eb7128f1a2a7fbca3", forKey, 1},
		{"iv", "smeg", "0a58cf64530d823f", "79993dfe048d3b76", forIV, 1},
		{"key-1000", "queeg", "05dec959acff72f7", "ed2034e36328830ff09df1e1a07dd357185dac0d4f9eb3d4", forKey, 1000},
		{"iv-1000", "queeg", "05dec959acff72f7", "11dedad7758d4860", forIV, 1000},
		{"mac", "smeg", "3d83c0e4546ac140", "8d967d88f6caa9d714800ab3d48051d63f73a312", forMAC, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pw := password{utf16: toUTF16([]rune(tt.pw))}
			want := unhex(t, tt.want)
			got, err := kdf12(t.Context(), sha1.New, tt.purpose, pw.terminated(), unhex(t, tt.salt), tt.iterations, len(want))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %x, %v; want %x", got, err, want)
			}
		})
	}
}

// TestDerivationsEndWithTheirContext: a deadline holds, whatever a file asks.
func TestDerivationsEndWithTheirContext(t *testing.T) {
	const years = 1 << 50
	stop := errors.New("stopped")
	for name, derive := range map[string]func(context.Context) error{
		"pbkdf2": func(ctx context.Context) error {
			_, err := pbkdf2(ctx, sha256.New, nil, nil, years, 32)
			return err
		},
		"kdf12": func(ctx context.Context) error {
			_, err := kdf12(ctx, sha1.New, forKey, nil, nil, years, 24)
			return err
		},
		"jceks": func(ctx context.Context) error {
			_, err := deriveJCEKS(ctx, nil, make([]byte, 8), years)
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- derive(ctx) }()
		cancel(stop)
		if err := <-done; !errors.Is(err, stop) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRC2 uses the vectors of RFC 2268, 5, whose effective length is the key's.
func TestRC2(t *testing.T) {
	tests := []struct{ name, key, plain, cipher string }{
		{"64-bit", "ffffffffffffffff", "ffffffffffffffff", "278b27e42e2f0d49"},
		{"64-bit-two", "3000000000000000", "1000000000000001", "30649edf9be7d2c2"},
		{"128-bit", "88bca90e90875a7f0f79c384627bafb2", "0000000000000000", "2269552ab0f85ca6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newRC2(unhex(t, tt.key))
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, rc2Block)
			c.Decrypt(got, unhex(t, tt.cipher))
			if !bytes.Equal(got, unhex(t, tt.plain)) {
				t.Errorf("got %x, want %s", got, tt.plain)
			}
		})
	}
}

// TestReadings: which bytes a password becomes, in the order of trying.
func TestReadings(t *testing.T) {
	tests := []struct {
		name, spelling string
		utf16, bytes   []string // hexadecimal, of each reading
	}{
		{"ascii", "ab", []string{"00610062"}, []string{"6162"}},
		{"utf-8", "é", []string{"00e9", "00c300a9"}, []string{"c3a9", "e9"}},
		{"latin-1", "\xe9", []string{"00e9", "00e9"}, []string{"c3a9", "e9"}},
		{"outside-bmp", "😀", []string{"d83dde00", "00f0009f00980080"}, []string{"f09f9880", "f09f9880"}},
		{"empty", "", []string{"", ""}, []string{"", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := readings([][]byte{[]byte(tt.spelling)})
			if len(got) != len(tt.utf16) {
				t.Fatalf("%d readings, want %d", len(got), len(tt.utf16))
			}
			for i, pw := range got {
				if !bytes.Equal(pw.utf16, unhex(t, tt.utf16[i])) || !bytes.Equal(pw.bytes, unhex(t, tt.bytes[i])) {
					t.Errorf("reading %d: %x, %x", i, pw.utf16, pw.bytes)
				}
			}
		})
	}
	empty := readings([][]byte{{}})
	if got := empty[0].terminated(); !bytes.Equal(got, []byte{0, 0}) || empty[1].terminated() != nil {
		t.Errorf("an empty password is %x, then %x", got, empty[1].terminated())
	}
	if readings(nil) != nil {
		t.Error("no password is not an empty one")
	}
}

// TestBudgetAdmitsTenThousandKeys as keytool writes them.
func TestBudgetAdmitsTenThousandKeys(t *testing.T) {
	b := newBudget(Limits{})
	for range 10_000 + 2 { // certificates and MAC too
		if err := b.one(10_000); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.sum(); err != nil {
		t.Error(err)
	}
}

// TestBudgetWithoutEnd: a limit that is no limit refuses nothing.
func TestBudgetWithoutEnd(t *testing.T) {
	for _, iterations := range []int{math.MaxInt / 32, math.MaxInt / 2, math.MaxInt} {
		b := newBudget(Limits{Iterations: iterations})
		if err := cmp.Or(b.one(10_000), b.sum()); err != nil {
			t.Errorf("limit %d: %v", iterations, err)
		}
	}
}
