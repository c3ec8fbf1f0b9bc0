// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// BenchmarkSign compares a signature here with one of Go's.
func BenchmarkSign(b *testing.B) {
	for _, kt := range []testca.KeyType{testca.P256, testca.RSA2048, testca.Ed25519} {
		signer := testca.NewKey(b, kt)
		for name, k := range map[string]keymanager.Key{"go": keymanager.FromSigner(signer), "openssl": mustLoad(b, pkcs8(b, signer))} {
			b.Run(string(kt)+"/"+name, func(b *testing.B) {
				req := &keymanager.SignRequest{Scheme: schemesOf(signer.Public())[0], Purpose: keymanager.ServerTLS13, Message: certificateVerify()}
				for b.Loop() {
					if _, err := k.Sign(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
