// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Extended key usages (RFC 5280, 4.2.1.12).
const (
	oidAnyUse     = "2.5.29.37.0"
	oidServerAuth = "1.3.6.1.5.5.7.3.1"
	oidClientAuth = "1.3.6.1.5.5.7.3.2"
)

// Reasons of a certificate that its trust settings make no anchor for TLS.
var (
	errRejected = errors.New("its trust settings (openssl x509 -addreject) reject it for TLS; openssl x509 -clrreject clears them")
	errOtherUse = errors.New("its trust settings (openssl x509 -addtrust) are for other uses than TLS; openssl x509 -clrtrust clears them")
)

// readTrusted reads OpenSSL's TRUSTED CERTIFICATE: a certificate and then,
// optionally, what it is trusted for and what it isn't (X509_CERT_AUX). That
// matters where it is an anchor, not where it is a link of a chain.
func readTrusted(b []byte) (*certificate, error) {
	damaged := &DamagedError{Where: "trusted certificate"}
	s := cryptobyte.String(b)
	var der, aux cryptobyte.String
	if !s.ReadASN1Element(&der, asn1.SEQUENCE) {
		return nil, damaged
	}
	c := newCertificate(der)
	if s.Empty() {
		return c, nil
	}
	if !s.ReadASN1(&aux, asn1.SEQUENCE) {
		return nil, damaged
	}
	trust, ok := readUses(&aux, asn1.SEQUENCE)
	reject, ok2 := readUses(&aux, asn1.Tag(0).Constructed().ContextSpecific())
	if !ok || !ok2 {
		return nil, damaged
	}
	tls := func(use string) bool { return use == oidAnyUse || use == oidServerAuth || use == oidClientAuth }
	switch {
	case slices.ContainsFunc(reject, tls):
		c.distrust = errRejected
	case len(trust) > 0 && !slices.ContainsFunc(trust, tls):
		c.distrust = errOtherUse
	}
	return c, nil
}

// readUses reads an optional sequence of object identifiers.
func readUses(s *cryptobyte.String, tag asn1.Tag) (uses []string, ok bool) {
	var seq cryptobyte.String
	if !s.ReadOptionalASN1(&seq, nil, tag) {
		return nil, false
	}
	for !seq.Empty() {
		var oid string
		if !readOID(&seq, &oid) {
			return nil, false
		}
		uses = append(uses, oid)
	}
	return uses, true
}
