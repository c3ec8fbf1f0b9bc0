// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// revocation is what the revocation lists of a site say. It is immutable. A nil
// one says nothing.
type revocation struct {
	lists  map[issuerKey]*crl
	above  map[[sha256.Size]byte]issuerKey // by client CA: which other of them issued it
	bare   []string                        // subjects of client CAs without a list: they revoke nobody
	warns  bool                            // of what an old list counts for
	digest [sha256.Size]byte               // of what is revoked, and not of when it was said
	now    func() time.Time
}

// crl is one revocation list.
type crl struct {
	file       string
	issuer     string
	nextUpdate time.Time // zero: it holds for ever
	thisUpdate time.Time
	serials    map[string]struct{} // as big-endian bytes
}

// issuerKey is an issuer by subject and public key: renewed certificates of a CA
// have the same.
type issuerKey [sha256.Size]byte

func issuerKeyOf(ca *x509.Certificate) issuerKey {
	return sha256.Sum256(slices.Concat(ca.RawSubject, ca.RawSubjectPublicKeyInfo))
}

// refusedClient is why a client is refused whose certificate is good but for what
// a revocation list says.
type refusedClient struct {
	reason Reason
	text   string
}

func (e *refusedClient) Error() string { return e.text }

func (e *refusedClient) handshakeReason() Reason { return e.reason }

// check returns nil if one of the chains, as crypto/tls verified them, has no
// revoked certificate and no list that is out of date; and where there is no
// chain, since then there is no certificate. It is asked for resumed sessions
// too, whose chains are those of their first handshake.
func (r *revocation) check(chains [][]*x509.Certificate) error {
	if r == nil {
		return nil
	}
	var first error
	for _, chain := range chains {
		err := r.checkChain(chain)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// verify is a tls.Config.VerifyConnection.
func (r *revocation) verify(cs tls.ConnectionState) error { return r.check(cs.VerifiedChains) }

func (r *revocation) checkChain(chain []*x509.Certificate) error {
	for i, cert := range chain {
		list := r.listFor(cert, chain[i+1:])
		if list == nil {
			continue
		}
		if _, revoked := list.serials[string(cert.SerialNumber.Bytes())]; revoked {
			return &refusedClient{ReasonRevoked, fmt.Sprintf("certificate %q, serial number %x, is revoked by %q",
				cert.Subject, cert.SerialNumber, list.issuer)}
		}
		if list.expired(r.now()) && !r.warns {
			return &refusedClient{ReasonCRLExpired, fmt.Sprintf("the revocation list of %q is out of date since %s: get a new one into %q",
				list.issuer, list.nextUpdate.UTC().Format(time.RFC3339), list.file)}
		}
	}
	return nil
}

// listFor returns the list that may name cert: that of the next certificate above
// it, and at the end of a chain that of whichever client CA issued it.
func (r *revocation) listFor(cert *x509.Certificate, above []*x509.Certificate) *crl {
	if len(above) > 0 {
		return r.lists[issuerKeyOf(above[0])]
	}
	issuer, ok := r.above[sha256.Sum256(cert.Raw)]
	if !ok {
		return nil
	}
	return r.lists[issuer]
}

func (l *crl) expired(now time.Time) bool {
	return !l.nextUpdate.IsZero() && now.After(l.nextUpdate)
}
