// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// ClientConfig returns a client configuration that presents a certificate
// chosen by the key manager, by the issuers and signature schemes that the
// server accepts, and signed for in the key process. Where none fits none is
// sent. It is the caller's, who may change and clone it; only
// GetClientCertificate is to stay.
func (k *Keys) ClientConfig() *tls.Config { return k.clientConfig("") }

// clientConfig tells the key process which backend it is for.
func (k *Keys) clientConfig(backend string) *tls.Config {
	return k.constrained(&tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return k.clientCertificate(info, backend)
		},
	})
}

func (k *Keys) clientCertificate(info *tls.CertificateRequestInfo, backend string) (*tls.Certificate, error) {
	if info.Version != tls.VersionTLS13 && info.Version != tls.VersionTLS12 {
		return nil, fmt.Errorf("no client certificate for %s: keys sign TLS 1.2 and 1.3 handshakes only", tls.VersionName(info.Version))
	}
	hs := handshake{ctx: info.Context(), listener: backend}
	if hs.ctx == nil { // info was made by hand
		hs.ctx = context.Background()
	}
	return k.credential(&hs, &keymanager.Hello{
		Role:     keymanager.RoleClient,
		Listener: backend,
		Version:  info.Version,
		Auth:     keymanager.AuthRSA | keymanager.AuthECDSA, // cipher suites bind the server only
		Schemes:  info.SignatureSchemes,
		Groups:   []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}, // a server doesn't show its own
		Issuers:  info.AcceptableCAs,

		ChainsElsewhere: info.Version == tls.VersionTLS13, // what else a server asked for isn't shown
	})
}
