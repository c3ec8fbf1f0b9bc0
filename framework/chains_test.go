// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestRSAChainOverTLS13Only: a peer that speaks TLS 1.3 alone lists the schemes
// of PKCS #1, by which RSA CAs sign, among those for certificates only. Clients
// of such servers and servers of such clients have to work with them.
func TestRSAChainOverTLS13Only(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root", Key: testca.RSA2048})
	c := root.Issue(t, testca.Spec{
		Name: "a.test", DNS: []string{"a.test"}, Key: testca.RSA2048,
		EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	for _, tier := range []string{"pkixcached", "pkix"} {
		t.Run(tier, func(t *testing.T) {
			k, err := Open(t.Context(), Config{KeyManager: tier, Tiers: testTiers(), Keystores: []keymanager.Source{storeOf(t, c)}})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			client := clientOf(root, "a.test")
			client.MinVersion = tls.VersionTLS13
			shake(t, client, k.TLSConfig()).ok(t)

			own, server := k.ClientConfig(), demanding(t, root)
			own.RootCAs, own.ServerName, server.MinVersion = root.Pool(), "a.test", tls.VersionTLS13
			if e := shake(t, own, server).ok(t); len(e.server.PeerCertificates) == 0 {
				t.Error("no client certificate")
			}
		})
	}
}
