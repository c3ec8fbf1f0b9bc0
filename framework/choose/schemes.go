// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"fmt"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// schemeSet is a set of signature schemes, one bit each.
type schemeSet uint32

// Signature schemes (RFC 8446, 4.2.3, and the hash and signature pairs of
// RFC 5246, 7.4.1.4.1), those of crypto/tls and those that only the signatures
// in a chain are made by.
const (
	rsaSHA1 schemeSet = 1 << iota
	rsaSHA224
	rsaSHA256
	rsaSHA384
	rsaSHA512
	pssSHA256 // rsae: the key's algorithm is rsaEncryption
	pssSHA384
	pssSHA512
	pssPSSSHA256 // the key's algorithm is RSASSA-PSS
	pssPSSSHA384
	pssPSSSHA512
	ecdsaSHA1
	ecdsaSHA224
	ecdsaSHA256
	ecdsaSHA384
	ecdsaSHA512
	ed25519Pure
	ed448Pure
	dsaSHA1
	dsaSHA224
	dsaSHA256
)

const (
	rsaFamily   = rsaSHA1 | rsaSHA224 | rsaSHA256 | rsaSHA384 | rsaSHA512 | pssSHA256 | pssSHA384 | pssSHA512
	ecdsaFamily = ecdsaSHA1 | ecdsaSHA224 | ecdsaSHA256 | ecdsaSHA384 | ecdsaSHA512
	eddsaFamily = ed25519Pure | ed448Pure
	anyPSS      = pssSHA256 | pssSHA384 | pssSHA512 | pssPSSSHA256 | pssPSSSHA384 | pssPSSSHA512
)

// setOf returns the set of the one scheme s, empty for one that is not known,
// such as GREASE (RFC 8701).
func setOf(s tls.SignatureScheme) schemeSet {
	switch s {
	case tls.PKCS1WithSHA1:
		return rsaSHA1
	case 0x0301:
		return rsaSHA224
	case tls.PKCS1WithSHA256:
		return rsaSHA256
	case tls.PKCS1WithSHA384:
		return rsaSHA384
	case tls.PKCS1WithSHA512:
		return rsaSHA512
	case tls.PSSWithSHA256:
		return pssSHA256
	case tls.PSSWithSHA384:
		return pssSHA384
	case tls.PSSWithSHA512:
		return pssSHA512
	case 0x0809:
		return pssPSSSHA256
	case 0x080a:
		return pssPSSSHA384
	case 0x080b:
		return pssPSSSHA512
	case tls.ECDSAWithSHA1:
		return ecdsaSHA1
	case 0x0303:
		return ecdsaSHA224
	case tls.ECDSAWithP256AndSHA256:
		return ecdsaSHA256
	case tls.ECDSAWithP384AndSHA384:
		return ecdsaSHA384
	case tls.ECDSAWithP521AndSHA512:
		return ecdsaSHA512
	case tls.Ed25519:
		return ed25519Pure
	case 0x0808:
		return ed448Pure
	case 0x0202:
		return dsaSHA1
	case 0x0302:
		return dsaSHA224
	case 0x0402:
		return dsaSHA256
	}
	return 0
}

func setOfAll(schemes []tls.SignatureScheme) schemeSet {
	var all schemeSet
	for _, s := range schemes {
		all |= setOf(s)
	}
	return all
}

// handshakeSchemes are those that crypto/tls signs handshakes by.
func handshakeSchemes() []tls.SignatureScheme {
	return []tls.SignatureScheme{
		tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512,
		tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
		tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
		tls.Ed25519,
	}
}

// keyTraits is what a choice needs to know of a key.
type keyTraits struct {
	name   string          // for people
	auth   keymanager.Auth // TLS 1.2 suites that it serves
	family schemeSet       // all schemes of its algorithm
	tls12  schemeSet       // schemes that a TLS 1.2 handshake may be signed by
	tls13  schemeSet
	group  tls.CurveID // EC only, else 0
}

func (k keyTraits) usable(version uint16) schemeSet {
	if version < tls.VersionTLS13 {
		return k.tls12
	}
	return k.tls13
}

// minRSABits is the size below which crypto/rsa refuses to sign.
const minRSABits = 1024

// traitsOf returns the traits of a public key, or why TLS can't use it here.
func traitsOf(pub crypto.PublicKey) (keyTraits, error) {
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		if bits := pub.N.BitLen(); bits < minRSABits {
			return keyTraits{}, fmt.Errorf("an RSA key of %d bits is too short (at least %d)", bits, minRSABits)
		}
		return rsaTraits(pub), nil
	case *ecdsa.PublicKey:
		return ecdsaTraits(pub.Curve)
	case ed25519.PublicKey:
		return keyTraits{
			name: "Ed25519", auth: keymanager.AuthECDSA, family: eddsaFamily,
			tls12: ed25519Pure, tls13: ed25519Pure,
		}, nil
	}
	return keyTraits{}, fmt.Errorf("TLS can't use a key of type %T here", pub)
}

// rsaTraits leaves out the one scheme that a modulus of at least minRSABits may
// be too short for (RFC 8017, 9.1.1, with a salt as long as the hash).
func rsaTraits(pub *rsa.PublicKey) keyTraits {
	k := keyTraits{name: fmt.Sprintf("RSA-%d", pub.N.BitLen()), auth: keymanager.AuthRSA, family: rsaFamily}
	k.tls13 = pssSHA256 | pssSHA384
	if pub.Size() >= 2*crypto.SHA512.Size()+2 {
		k.tls13 |= pssSHA512
	}
	k.tls12 = k.tls13 | rsaSHA256 | rsaSHA384 | rsaSHA512
	return k
}

// ecdsaTraits follows RFC 8446, 4.2.3: the curve in a scheme's name counts in
// TLS 1.3 only.
func ecdsaTraits(curve elliptic.Curve) (keyTraits, error) {
	k := keyTraits{auth: keymanager.AuthECDSA, family: ecdsaFamily, tls12: ecdsaSHA256 | ecdsaSHA384 | ecdsaSHA512}
	switch curve {
	case elliptic.P256():
		k.tls13, k.group = ecdsaSHA256, tls.CurveP256
	case elliptic.P384():
		k.tls13, k.group = ecdsaSHA384, tls.CurveP384
	case elliptic.P521():
		k.tls13, k.group = ecdsaSHA512, tls.CurveP521
	default:
		return keyTraits{}, fmt.Errorf("TLS can't use a key on curve %s here", curve.Params().Name)
	}
	k.name = "ECDSA " + curve.Params().Name
	return k, nil
}
