// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

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

// Schemes returns the signature schemes that handshakes are signed by
// (RFC 8446, 4.2.3). SHA-1 is left out even where GODEBUG would let it in.
func Schemes() []tls.SignatureScheme {
	return []tls.SignatureScheme{
		tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512,
		tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
		tls.Ed25519,
		tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
	}
}

// parts returns what s is made of: zeros for a scheme that is not among
// Schemes, and a zero hash for Ed25519.
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

// SchemeFits says whether a handshake of the version, tls.VersionTLS12 or
// tls.VersionTLS13, can be signed by s with a key like pub. In TLS 1.2 a scheme
// with a curve in its name goes with any curve, and RSA with PKCS #1 v1.5 too
// (RFC 8446, 4.2.3).
func SchemeFits(s tls.SignatureScheme, pub crypto.PublicKey, version uint16) bool {
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

// SchemeOf returns the scheme that crypto/tls means when it has a key like pub
// sign with opts.
func SchemeOf(pub crypto.PublicKey, opts crypto.SignerOpts) (tls.SignatureScheme, error) {
	_, pss := opts.(*rsa.PSSOptions)
	for _, s := range Schemes() {
		alg, hash := parts(s)
		if hash == opts.HashFunc() && pss == (alg == rsaPSS) && SchemeFits(s, pub, tls.VersionTLS12) {
			return s, nil
		}
	}
	return 0, fmt.Errorf("sign: no TLS signature scheme for a %T with %v", pub, opts.HashFunc())
}

// SignerOpts is the inverse of SchemeOf: what a crypto.Signer needs to sign by s,
// one of Schemes. HashFunc of it is 0 for Ed25519.
func SignerOpts(s tls.SignatureScheme) crypto.SignerOpts {
	alg, hash := parts(s)
	if alg == rsaPSS {
		return &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	}
	return hash
}

// digestOf returns what is signed by a scheme with that hash: msg itself where it
// is zero.
func digestOf(hash crypto.Hash, msg []byte) []byte {
	if hash == 0 {
		return msg
	}
	h := hash.New()
	h.Write(msg)
	return h.Sum(nil)
}

var errBadSignature = errors.New("signature does not verify")

// Verify returns nil if sig is a signature of msg by s, one of Schemes, with the
// private key of pub.
func Verify(pub crypto.PublicKey, s tls.SignatureScheme, msg, sig []byte) error {
	alg, hash := parts(s)
	ok := false
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		switch alg {
		case rsaPSS:
			ok = rsa.VerifyPSS(pub, hash, digestOf(hash, msg), sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		case rsaPKCS1:
			ok = rsa.VerifyPKCS1v15(pub, hash, digestOf(hash, msg), sig) == nil
		}
	case *ecdsa.PublicKey:
		ok = alg == ecdsaASN1 && ecdsa.VerifyASN1(pub, digestOf(hash, msg), sig)
	case ed25519.PublicKey:
		ok = alg == eddsa && ed25519.Verify(pub, msg, sig)
	}
	if !ok {
		return errBadSignature
	}
	return nil
}
