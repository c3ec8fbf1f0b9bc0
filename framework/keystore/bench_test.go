// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"fmt"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// benchShop is a keystore of n entries at keytool's iteration count.
func benchShop(b *testing.B, n int) *shop {
	s := newShop(b)
	entries := make([]testca.StoreEntry, n)
	for i := range entries {
		entries[i] = s.entry(fmt.Sprintf("host%04d", i))
	}
	testca.PKCS12{Iterations: 10_000}.Write(b, s.path, storePassword, entries...)
	return s
}

func benchSizes(b *testing.B, run func(b *testing.B, s *shop)) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("entries-%d", n), func(b *testing.B) { run(b, benchShop(b, n)) })
	}
}

// BenchmarkOpen lists: no key is decrypted.
func BenchmarkOpen(b *testing.B) {
	benchSizes(b, func(b *testing.B, s *shop) {
		for b.Loop() {
			if _, err := Open(b.Context(), s.source(), Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkProve decrypts every key once.
func BenchmarkProve(b *testing.B) {
	benchSizes(b, func(b *testing.B, s *shop) {
		for b.Loop() {
			mustProve(b, s.source())
		}
	})
}

// BenchmarkSigner decrypts one key, which must not depend on the others.
func BenchmarkSigner(b *testing.B) {
	benchSizes(b, func(b *testing.B, s *shop) {
		e := mustProve(b, s.source()).Entries[0]
		for b.Loop() {
			signer, err := e.Signer(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			Wipe(signer)
		}
	})
}
