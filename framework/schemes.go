// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
)

// algorithm is the signature algorithm within a TLS signature scheme.
type algorithm byte

const (
	rsaPKCS1 algorithm = 1 + iota
	rsaPSS
	ecdsaASN1
	eddsa
)

// allSchemes are the signature schemes that a handshake may be signed with
// (RFC 8446, 4.2.3). SHA-1 is left out even where GODEBUG would let it in.
func allSchemes() []tls.SignatureScheme {
	return []tls.SignatureScheme{
		tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512,
		tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
		tls.Ed25519,
		tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
	}
}

// parts returns what s is made of: zeros for a scheme that is not among
// allSchemes, and a zero hash for Ed25519.
func parts(s tls.SignatureScheme) (algorithm, crypto.Hash) {
	switch s {
	case tls.PKCS1WithSHA256:
		return rsaPKCS1, crypto.SHA256
	case tls.PKCS1WithSHA384:
		return rsaPKCS1, crypto.SHA384
	case tls.PKCS1WithSHA512:
		return rsaPKCS1, crypto.SHA512
	case tls.PSSWithSHA256:
		return rsaPSS, crypto.SHA256
	case tls.PSSWithSHA384:
		return rsaPSS, crypto.SHA384
	case tls.PSSWithSHA512:
		return rsaPSS, crypto.SHA512
	case tls.ECDSAWithP256AndSHA256:
		return ecdsaASN1, crypto.SHA256
	case tls.ECDSAWithP384AndSHA384:
		return ecdsaASN1, crypto.SHA384
	case tls.ECDSAWithP521AndSHA512:
		return ecdsaASN1, crypto.SHA512
	case tls.Ed25519:
		return eddsa, 0
	}
	return 0, 0
}

// schemeOf returns the scheme that crypto/tls means by opts with a key like pub.
func schemeOf(pub crypto.PublicKey, opts crypto.SignerOpts) (tls.SignatureScheme, error) {
	var want algorithm
	switch pub.(type) {
	case *ecdsa.PublicKey:
		want = ecdsaASN1
	case ed25519.PublicKey:
		want = eddsa
	case *rsa.PublicKey:
		want = rsaPKCS1
		if _, ok := opts.(*rsa.PSSOptions); ok {
			want = rsaPSS
		}
	}
	for _, s := range allSchemes() {
		if alg, hash := parts(s); alg == want && hash == opts.HashFunc() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("sign: no TLS signature scheme for a %T with %v", pub, opts.HashFunc())
}

// fits says whether a handshake of the version can be signed with s by a key
// like pub. In TLS 1.2 a scheme with a curve in its name goes with any curve
// (RFC 8446, 4.2.3), and RSA with PKCS #1 v1.5 too.
func fits(s tls.SignatureScheme, pub crypto.PublicKey, version uint16) bool {
	alg, hash := parts(s)
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		// The lengths are those of RFC 8017, 9.1.1 and 9.2.
		const digestInfo, padding = 19, 11
		return alg == rsaPSS && pub.Size() >= 2*hash.Size()+2 ||
			alg == rsaPKCS1 && pub.Size() >= digestInfo+hash.Size()+padding && version < tls.VersionTLS13
	case *ecdsa.PublicKey:
		return alg == ecdsaASN1 && (version < tls.VersionTLS13 || pub.Curve == curveOf(s))
	case ed25519.PublicKey:
		return alg == eddsa
	}
	return false
}

func curveOf(s tls.SignatureScheme) elliptic.Curve {
	switch s {
	case tls.ECDSAWithP256AndSHA256:
		return elliptic.P256()
	case tls.ECDSAWithP384AndSHA384:
		return elliptic.P384()
	case tls.ECDSAWithP521AndSHA512:
		return elliptic.P521()
	}
	return nil
}

// errBadSignature is returned when a signature is not one of the message by
// the key.
var errBadSignature = errors.New("signature does not verify")

// verify returns nil if sig is a signature of msg by pub with s.
func verify(pub crypto.PublicKey, s tls.SignatureScheme, msg, sig []byte) error {
	alg, hash := parts(s)
	digest := msg
	if hash != 0 {
		h := hash.New()
		h.Write(msg)
		digest = h.Sum(nil)
	}
	ok := false
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		if alg == rsaPSS {
			ok = rsa.VerifyPSS(pub, hash, digest, sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		} else {
			ok = rsa.VerifyPKCS1v15(pub, hash, digest, sig) == nil
		}
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(pub, digest, sig)
	case ed25519.PublicKey:
		ok = ed25519.Verify(pub, digest, sig)
	}
	if !ok {
		return errBadSignature
	}
	return nil
}
