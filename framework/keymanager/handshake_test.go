// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager_test

import (
	"crypto"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// checkedSigner signs for crypto/tls what Check lets through, and nothing else.
type checkedSigner struct {
	crypto.Signer
	t       *testing.T
	purpose keymanager.Purpose
	scheme  tls.SignatureScheme
}

func (s checkedSigner) SignMessage(random io.Reader, msg []byte, opts crypto.SignerOpts) ([]byte, error) {
	r := &keymanager.SignRequest{Scheme: s.scheme, Purpose: s.purpose, Message: msg}
	if err := r.CheckKey(s.Public()); err != nil {
		s.t.Errorf("a real handshake is refused: %v", err)
	}
	return crypto.SignMessage(s.Signer, random, msg, opts)
}

// TestCheckPassesRealHandshakes has crypto/tls make every kind of message that
// is signed, with each group of TLS 1.2 and with and without a stapled OCSP
// response, which is one more message that a client signs. Ed25519 certificates
// need no group of their own in TLS 1.2.
func TestCheckPassesRealHandshakes(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	leaf := ca.Issue(t, testca.Spec{DNS: []string{"w.test"}, Key: testca.Ed25519})
	client := ca.Issue(t, testca.Spec{Name: "client", Key: testca.Ed25519})
	tests := []struct {
		name           string
		version        uint16
		group          tls.CurveID
		staple         []byte
		server, client keymanager.Purpose
	}{
		{"tls13", tls.VersionTLS13, tls.X25519, nil, keymanager.ServerTLS13, keymanager.ClientTLS13},
		{"tls13_post_quantum", tls.VersionTLS13, tls.X25519MLKEM768, nil, keymanager.ServerTLS13, keymanager.ClientTLS13},
		{"tls12_x25519", tls.VersionTLS12, tls.X25519, nil, keymanager.ServerTLS12, keymanager.ClientTLS12},
		{"tls12_p256", tls.VersionTLS12, tls.CurveP256, nil, keymanager.ServerTLS12, keymanager.ClientTLS12},
		{"tls12_p384", tls.VersionTLS12, tls.CurveP384, nil, keymanager.ServerTLS12, keymanager.ClientTLS12},
		{"tls12_p521", tls.VersionTLS12, tls.CurveP521, nil, keymanager.ServerTLS12, keymanager.ClientTLS12},
		{"tls12_stapled", tls.VersionTLS12, tls.X25519, []byte("response"), keymanager.ServerTLS12, keymanager.ClientTLS12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			certificate := func(c *testca.Cert, purpose keymanager.Purpose) tls.Certificate {
				return tls.Certificate{
					Certificate: c.Chain(), OCSPStaple: tt.staple,
					PrivateKey: checkedSigner{c.Key, t, purpose, tls.Ed25519},
				}
			}
			shakeHands(t, &tls.Config{
				Certificates: []tls.Certificate{certificate(leaf, tt.server)}, ClientAuth: tls.RequireAnyClientCert,
				MaxVersion: tt.version, CurvePreferences: []tls.CurveID{tt.group},
			}, &tls.Config{
				Certificates: []tls.Certificate{certificate(client, tt.client)}, RootCAs: ca.Pool(), ServerName: "w.test",
				MaxVersion: tt.version, CurvePreferences: []tls.CurveID{tt.group},
			})
		})
	}
}

func shakeHands(t *testing.T, server, client *tls.Config) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		s := tls.Server(far, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		ended <- err
		far.Close()
	}()
	c := tls.Client(near, client)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("client: %v", err)
	}
	near.Close()
	if err := <-ended; err != nil {
		t.Errorf("server: %v", err)
	}
	if got := c.ConnectionState().CurveID; got != client.CurvePreferences[0] {
		t.Errorf("group %v, want %v", got, client.CurvePreferences[0])
	}
}
