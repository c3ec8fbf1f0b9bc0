// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Sizes of RSA moduli in bits: the smallest that Go signs with, and the largest
// that Java and OpenSSL work with. One that is larger costs minutes to compute
// with, of which no context knows.
const (
	minRSA = 1024
	maxRSA = 16384
)

// parseKey parses a private key, PKCS#8, PKCS#1 or SEC 1. It returns a
// *KeyTypeError for a key that is in order and of no use to TLS here. der stays
// the caller's.
func parseKey(der []byte) (crypto.Signer, error) {
	strict, kind, err := readKey(der)
	if err != nil {
		return nil, err
	}
	var key any
	switch kind {
	case derPKCS8:
		key, err = x509.ParsePKCS8PrivateKey(strict)
	case derPKCS1:
		key, err = x509.ParsePKCS1PrivateKey(strict)
	case derSEC1:
		key, err = x509.ParseECPrivateKey(strict)
	}
	if err != nil {
		return nil, &DamagedError{Where: "private key", Err: err}
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, &KeyTypeError{Type: fmt.Sprintf("%T", key)}
	}
	if err := usableType(signer.Public()); err != nil {
		Wipe(signer)
		return nil, err
	}
	return signer, nil
}

// readKey returns a private key in strict DER, der itself where it is that, and
// its structure. It returns a *KeyTypeError where TLS has no use for the key,
// as far as that can be seen without parsing all of it.
func readKey(der []byte) (strict []byte, kind kindOfDER, err error) {
	strict, _, err = toDER(der)
	if err != nil {
		return nil, derOther, err
	}
	switch kind = derKind(strict); kind {
	case derPKCS8:
		err = pkcs8KeyType(strict)
	case derPKCS1:
		err = rsaKeyType(strict)
	case derSEC1:
		err = sec1KeyType(strict)
	default:
		err = &DamagedError{Where: "private key", Err: errors.New("of an unknown structure")}
	}
	return strict, kind, err
}

// usableType returns nil if TLS can use such a key here.
func usableType(public crypto.PublicKey) error {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return rsaSize(k.N)
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return &KeyTypeError{Type: publicKeyType(public)}
}

// publicKeyType names a key's type for people.
func publicKeyType(public crypto.PublicKey) string {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA-%d", k.N.BitLen())
	case *ecdsa.PublicKey:
		return k.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return fmt.Sprintf("%T", public)
}

// keyType names the type of the certificate's key, or is empty.
func (c *certificate) keyType() string {
	if c.parsed == nil {
		return ""
	}
	if c.parsed.PublicKeyAlgorithm == x509.UnknownPublicKeyAlgorithm || c.parsed.PublicKeyAlgorithm == x509.DSA {
		s := cryptobyte.String(c.parsed.RawSubjectPublicKeyInfo)
		var spki cryptobyte.String
		if s.ReadASN1(&spki, asn1.SEQUENCE) {
			if oid, _, err := readAlgorithm(&spki); err == nil {
				return keyTypeName(oid)
			}
		}
		return ""
	}
	return publicKeyType(c.parsed.PublicKey)
}

// pkcs8KeyType returns a *KeyTypeError if a PKCS#8 key (RFC 5208, 5) is of a
// type that TLS cannot use here. x509 has only one text for all of them.
func pkcs8KeyType(der []byte) error {
	s := cryptobyte.String(der)
	var seq cryptobyte.String
	if !s.ReadASN1(&seq, asn1.SEQUENCE) {
		return nil
	}
	if _, ok := readInt(&seq); !ok {
		return nil
	}
	oid, params, err := readAlgorithm(&seq)
	if err != nil {
		return nil
	}
	inner, _ := readOctets(seq)
	switch oid {
	case oidEC:
		return curveType(params)
	case oidRSA:
		return rsaKeyType(inner)
	case oidEd25519:
		return nil
	}
	return &KeyTypeError{Type: keyTypeName(oid)}
}

// curveType judges ECParameters (RFC 5480, 2.1.1).
func curveType(params cryptobyte.String) error {
	if params.PeekASN1Tag(asn1.SEQUENCE) {
		return &KeyTypeError{Type: "EC key with explicit curve parameters"}
	}
	var oid string
	if !readOID(&params, &oid) {
		return nil
	}
	switch oid {
	case oidP256, oidP384, oidP521:
		return nil
	}
	return &KeyTypeError{Type: keyTypeName(oid)}
}

// sec1KeyType judges the parameters of an ECPrivateKey (RFC 5915, 3).
func sec1KeyType(der []byte) error {
	s := cryptobyte.String(der)
	var seq, params cryptobyte.String
	var present bool
	if !s.ReadASN1(&seq, asn1.SEQUENCE) || !seq.SkipASN1(asn1.INTEGER) || !seq.SkipASN1(asn1.OCTET_STRING) ||
		!seq.ReadOptionalASN1(&params, &present, asn1.Tag(0).Constructed().ContextSpecific()) || !present {
		return nil
	}
	return curveType(params)
}

// rsaKeyType judges the size of an RSAPrivateKey (RFC 8017, A.1.2).
func rsaKeyType(der []byte) error {
	s := cryptobyte.String(der)
	var seq cryptobyte.String
	n := new(big.Int)
	if !s.ReadASN1(&seq, asn1.SEQUENCE) || !seq.SkipASN1(asn1.INTEGER) || !seq.ReadASN1Integer(n) {
		return nil
	}
	return rsaSize(n)
}

// rsaSize returns a *KeyTypeError if a modulus is too small or too large.
func rsaSize(n *big.Int) error {
	if bits := n.BitLen(); bits < minRSA || bits > maxRSA {
		return &KeyTypeError{Type: fmt.Sprintf("RSA-%d", bits)}
	}
	return nil
}

// samePublic compares public keys. A key of a type that has no Equal is none of
// ours.
func samePublic(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// Wipe overwrites the private parts of a key that Signer or parsing returned.
// The key is useless afterwards. Copies that the standard library made of it
// inside the key remain until the garbage collector takes them.
func Wipe(s crypto.Signer) {
	switch k := s.(type) {
	case *rsa.PrivateKey:
		wipeInt(k.D)
		for _, p := range k.Primes {
			wipeInt(p)
		}
		wipeInt(k.Precomputed.Dp)
		wipeInt(k.Precomputed.Dq)
		wipeInt(k.Precomputed.Qinv)
	case *ecdsa.PrivateKey:
		//lint:ignore SA1019 deprecated for making keys by hand; here one ends
		wipeInt(k.D)
	case ed25519.PrivateKey:
		clear(k)
	}
}

func wipeInt(n *big.Int) {
	if n != nil {
		clear(n.Bits())
	}
}
