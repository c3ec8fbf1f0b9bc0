// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"bytes"
	"crypto"
	"crypto/sha1"
	"encoding/asn1"
	"testing"
)

// StoreEntry is one entry of a keystore.
type StoreEntry struct {
	Alias       string // empty: no friendlyName
	Cert        *Cert
	Chain       [][]byte      // DER, leaf first; nil: Cert.Chain()
	Key         crypto.Signer // nil: Cert.Key; another makes an entry that doesn't match
	KeyPassword string        // empty: the store's
	Trusted     bool          // the certificate only, with Java's attribute for trusted ones
}

// PKCS12 is how a PKCS#12 file is written: PBES2 with AES-256-CBC and
// HMAC-SHA-256, and a MAC with SHA-256, as keytool and openssl do by default.
type PKCS12 struct {
	Iterations int  // of each key derivation; 0: 100
	PlainCerts bool // don't encrypt the certificates
	OldPBES2   bool // encode the parameters of PBES2 as Java 8 to 10 do (JDK-8202837)
}

// WritePKCS12 writes a keystore that keytool, openssl and go-pkcs12 (if it has
// one key) read. Entries keep their order. For options see [PKCS12].
func WritePKCS12(t testing.TB, path, password string, entries ...StoreEntry) {
	t.Helper()
	PKCS12{}.Write(t, path, password, entries...)
}

// Write writes a keystore as p says.
func (p PKCS12) Write(t testing.TB, path, password string, entries ...StoreEntry) {
	t.Helper()
	write(t, path, p.Encode(t, password, entries...))
}

// Encode returns a keystore as p says.
func (p PKCS12) Encode(t testing.TB, password string, entries ...StoreEntry) []byte {
	t.Helper()
	if p.Iterations == 0 {
		p.Iterations = 100
	}
	w := writer{t: t, iterations: p.Iterations, oldPBES2: p.OldPBES2, password: password, written: map[string]bool{}}
	for _, e := range entries {
		w.add(e)
	}
	certs := w.encryptedData(sequence(w.certs...))
	if p.PlainCerts {
		certs = data(sequence(w.certs...))
	}
	safes := [][]byte{certs}
	if len(w.keys) > 0 {
		safes = append(safes, data(sequence(w.keys...)))
	}
	return w.pfx(sequence(safes...))
}

// Object identifiers of RFC 7292, RFC 2985 and, the last, of the JDK.
var (
	oidData            = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidEncryptedData   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 6}
	oidShroudedKeyBag  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 2}
	oidCertBag         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 3}
	oidX509Certificate = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 22, 1}
	oidFriendlyName    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 20}
	oidLocalKeyID      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 21}
	oidTrustedKeyUsage = asn1.ObjectIdentifier{2, 16, 840, 1, 113894, 746875, 1, 1}
	oidAnyExtendedUse  = asn1.ObjectIdentifier{2, 5, 29, 37, 0}
)

// writer collects bags, DER each.
type writer struct {
	t          testing.TB
	iterations int
	oldPBES2   bool
	password   string
	keys       [][]byte
	certs      [][]byte
	written    map[string]bool // issuers' certificates that are in certs, by DER
}

func (w *writer) add(e StoreEntry) {
	chain := e.Chain
	if chain == nil {
		chain = e.Cert.Chain()
	}
	if e.Trusted {
		w.certs = append(w.certs, certBag(chain[0], friendlyName(e.Alias), attribute(oidTrustedKeyUsage, der(oidAnyExtendedUse))))
		return
	}
	if e.Key == nil {
		e.Key = e.Cert.Key
	}
	if e.KeyPassword == "" {
		e.KeyPassword = w.password
	}
	id := sha1.Sum(chain[0])
	names := [][]byte{friendlyName(e.Alias), attribute(oidLocalKeyID, der(id[:]))}
	w.keys = append(w.keys, bag(oidShroudedKeyBag, w.encryptKey(e.Key, e.KeyPassword), names...))
	w.certs = append(w.certs, certBag(chain[0], names...))
	for _, cert := range chain[1:] {
		if !w.written[string(cert)] {
			w.written[string(cert)] = true
			w.certs = append(w.certs, certBag(cert))
		}
	}
}

// encryptKey returns an EncryptedPrivateKeyInfo.
func (w *writer) encryptKey(key crypto.Signer, password string) []byte {
	algorithm, ciphertext := w.encrypt(pkcs8(key), password)
	return sequence(algorithm, der(ciphertext))
}

func certBag(cert []byte, attributes ...[]byte) []byte {
	return bag(oidCertBag, sequence(der(oidX509Certificate), explicit(der(cert))), attributes...)
}

// bag returns a SafeBag. Empty attributes are left out.
func bag(oid asn1.ObjectIdentifier, value []byte, attributes ...[]byte) []byte {
	parts := [][]byte{der(oid), explicit(value)}
	if set := bytes.Join(attributes, nil); len(set) > 0 {
		parts = append(parts, raw(asn1.TagSet, true, set))
	}
	return sequence(parts...)
}

// data returns a ContentInfo of type data.
func data(content []byte) []byte {
	return sequence(der(oidData), explicit(der(content)))
}

// encryptedData returns a ContentInfo of type encryptedData.
func (w *writer) encryptedData(content []byte) []byte {
	algorithm, ciphertext := w.encrypt(content, w.password)
	inner := sequence(der(oidData), algorithm, implicit(ciphertext))
	return sequence(der(oidEncryptedData), explicit(sequence(der(0), inner)))
}

func (w *writer) pfx(authSafe []byte) []byte {
	return sequence(der(3), data(authSafe), w.macData(authSafe))
}
