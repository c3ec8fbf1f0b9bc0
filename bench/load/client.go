// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Client returns how all clients of the benchmarks are: X25519, one version, the
// chain verified by the root in a file. Names are not verified, as JSSE's engines
// don't by themselves, and as sunx509 doesn't choose by them. A resumed session
// was verified when it began.
func Client(caFile, name string, version uint16) (*tls.Config, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read root: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read root: no certificate in %q", caFile)
	}
	return &tls.Config{
		ServerName: name, // an address is not sent
		MinVersion: version, MaxVersion: version,
		// In TLS 1.2 the second one is what allows a P-256 certificate.
		CurvePreferences:   []tls.CurveID{tls.X25519, tls.CurveP256},
		InsecureSkipVerify: true,
		VerifyConnection:   func(s tls.ConnectionState) error { return verify(s, roots) },
	}, nil
}

var errNoChain = errors.New("the server sent no certificate")

func verify(s tls.ConnectionState, roots *x509.CertPool) error {
	if s.DidResume {
		return nil
	}
	if len(s.PeerCertificates) == 0 {
		return errNoChain
	}
	above := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		above.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: above})
	return err
}
