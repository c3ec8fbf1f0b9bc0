// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestTrialFindsTheKeyOfAnother lets a key that is not the certificate's sign.
func TestTrialFindsTheKeyOfAnother(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519} {
		t.Run(string(kt), func(t *testing.T) {
			c, other := root.Issue(t, testca.Spec{Key: kt}), testca.NewKey(t, kt)
			if _, err := trial(t.Context(), keymanager.FromSigner(c.Key), c.Cert, nil); err != nil {
				t.Errorf("its own key: %v", err)
			}
			if _, err := trial(t.Context(), keymanager.FromSigner(other), c.Cert, nil); err == nil || !strings.Contains(err.Error(), "don't belong together") {
				t.Errorf("another key: %v", err)
			}
		})
	}
}

// TestTrialObeysSchemes asks for what TLS 1.3 does not sign by.
func TestTrialObeysSchemes(t *testing.T) {
	c := testca.NewRoot(t, testca.Spec{Name: "root", Key: testca.RSA2048})
	if _, err := trial(context.Background(), keymanager.FromSigner(c.Key), c.Cert, []tls.SignatureScheme{tls.PKCS1WithSHA256}); err == nil {
		t.Error("a TLS 1.3 handshake is signed by PKCS #1 v1.5")
	}
}
