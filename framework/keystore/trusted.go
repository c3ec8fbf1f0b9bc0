// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// ErrNoTrusted is returned by Trusted for a file without a trusted certificate:
// an empty set would quietly trust nobody.
var ErrNoTrusted = errors.New("no trusted certificate in it")

// Trusted reads a trust store: every certificate of PEM or DER, the trusted
// entries of PKCS#12, JKS and JCEKS. typ is as keymanager.Source.Type, pw the
// store's password, if it has one: JKS opens without, PKCS#12 needs it where its
// certificates are encrypted. A PKCS#12 store that marks nothing as trusted and
// holds no key, as OpenSSL writes them, counts as one whole, with a warning.
// Keys are neither decrypted nor trusted. Errors leave it to the caller to name
// the file.
func Trusted(ctx context.Context, path, typ string, pw keymanager.PasswordRef, lim Limits) (certs []*x509.Certificate, warnings []string, err error) {
	s, err := open(ctx, keymanager.Source{Paths: []string{path}, Type: typ, Store: pw}, lim)
	if p := (*PasswordError)(nil); errors.As(err, &p) {
		p.Trust = true
	}
	if err != nil {
		return nil, nil, err
	}
	// What belongs to no key is no oddity in a trust store: Open's warnings
	// about that are ours to make.
	warnings = s.opening
	var first error // why one is left out
	for _, c := range s.trusted(&warnings) {
		cause := cmp.Or(c.err, c.distrust)
		if cause == nil {
			certs = append(certs, c.parsed)
			continue
		}
		err := fmt.Errorf("number %d, %q: %w", slices.Index(s.certs, c)+1, c.title(), cause)
		warnings = append(warnings, fmt.Sprintf("a certificate is left out: %v", err))
		first = cmp.Or(first, err)
	}
	switch {
	case len(certs) > 0:
		return certs, warnings, nil
	case first != nil:
		return nil, warnings, fmt.Errorf("%w that can be used: %w", ErrNoTrusted, first)
	}
	return nil, warnings, fmt.Errorf("%w; %s", ErrNoTrusted, s.census())
}

// trusted returns the certificates that s trusts, each once.
func (s *Store) trusted(warnings *[]string) []*certificate {
	keys := s.count(keymanager.KindKey)
	all := s.Format == PEM
	if s.Format == PKCS12 && keys == 0 && s.count(keymanager.KindTrusted) == 0 && len(s.certs) > 0 {
		all = true
		*warnings = append(*warnings, "no certificate is marked as trusted in Java's way; since there is no key either, all are taken")
	}
	var out []*certificate
	for _, c := range s.certs {
		if (all || c.trusted) && !contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

func (s *Store) count(kind string) int {
	n := 0
	for _, e := range s.Entries {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// census says what there is instead of trusted certificates.
func (s *Store) census() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "it is %s with %d key entries and %d certificates", s.Format, s.count(keymanager.KindKey), len(s.certs))
	if s.Format != PEM && len(s.certs) > 0 {
		b.WriteString("; import certificates with keytool -importcert to mark them as trusted")
	}
	return b.String()
}
