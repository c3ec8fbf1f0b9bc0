// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
)

// normalName returns the form in which algorithm names are compared: lower
// case, SHA-256 as SHA256, DiffieHellman as DH.
func normalName(s string) string {
	s = strings.ToLower(s)
	if rest, ok := strings.CutPrefix(s, "sha-"); ok {
		s = "sha" + rest
	}
	if s == "diffiehellman" {
		return "dh"
	}
	return s
}

// signatureNames returns the names, normalised, by which a rule can mean the
// algorithm that signed a certificate: the whole name and its parts, as the JDK
// splits it, and the TLS scheme.
func signatureNames(alg x509.SignatureAlgorithm) []string {
	switch alg {
	case x509.MD2WithRSA:
		return []string{"md2withrsa", "md2", "rsa"}
	case x509.MD5WithRSA:
		return []string{"md5withrsa", "md5", "rsa", "rsa_pkcs1_md5"}
	case x509.SHA1WithRSA:
		return []string{"sha1withrsa", "sha1", "rsa", "rsa_pkcs1_sha1"}
	case x509.SHA256WithRSA:
		return []string{"sha256withrsa", "sha256", "rsa", "rsa_pkcs1_sha256"}
	case x509.SHA384WithRSA:
		return []string{"sha384withrsa", "sha384", "rsa", "rsa_pkcs1_sha384"}
	case x509.SHA512WithRSA:
		return []string{"sha512withrsa", "sha512", "rsa", "rsa_pkcs1_sha512"}
	case x509.SHA256WithRSAPSS:
		return []string{"rsassa-pss", "sha256", "rsa_pss_rsae_sha256"}
	case x509.SHA384WithRSAPSS:
		return []string{"rsassa-pss", "sha384", "rsa_pss_rsae_sha384"}
	case x509.SHA512WithRSAPSS:
		return []string{"rsassa-pss", "sha512", "rsa_pss_rsae_sha512"}
	case x509.DSAWithSHA1:
		return []string{"sha1withdsa", "sha1", "dsa", "dsa_sha1"}
	case x509.DSAWithSHA256:
		return []string{"sha256withdsa", "sha256", "dsa"}
	case x509.ECDSAWithSHA1:
		return []string{"sha1withecdsa", "sha1", "ecdsa", "ecdsa_sha1"}
	case x509.ECDSAWithSHA256:
		return []string{"sha256withecdsa", "sha256", "ecdsa", "ecdsa_secp256r1_sha256"}
	case x509.ECDSAWithSHA384:
		return []string{"sha384withecdsa", "sha384", "ecdsa", "ecdsa_secp384r1_sha384"}
	case x509.ECDSAWithSHA512:
		return []string{"sha512withecdsa", "sha512", "ecdsa", "ecdsa_secp521r1_sha512"}
	case x509.PureEd25519:
		return []string{"ed25519", "eddsa"}
	}
	return nil
}

// keyNames returns the names by which a rule can mean a public key, and its
// size in bits, -1 where it has none that a rule could be about.
func keyNames(pub any) (names []string, bits int) {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return []string{"rsa"}, k.N.BitLen()
	case *ecdsa.PublicKey:
		return append([]string{"ec"}, curveNames(k.Curve)...), k.Curve.Params().BitSize
	case ed25519.PublicKey:
		return []string{"eddsa", "ed25519"}, 255
	}
	return nil, -1
}

func curveNames(c elliptic.Curve) []string {
	switch c {
	case elliptic.P224():
		return []string{"secp224r1", "nist p-224", "1.3.132.0.33"}
	case elliptic.P256():
		return []string{"secp256r1", "nist p-256", "x9.62 prime256v1", "prime256v1", "1.2.840.10045.3.1.7"}
	case elliptic.P384():
		return []string{"secp384r1", "nist p-384", "1.3.132.0.34"}
	case elliptic.P521():
		return []string{"secp521r1", "nist p-521", "1.3.132.0.35"}
	}
	return nil
}

// schemeName returns the name of a handshake signature scheme in RFC 8446,
// 4.2.3, which the JDK's properties use.
func schemeName(s tls.SignatureScheme) string {
	switch s {
	case tls.PKCS1WithSHA1:
		return "rsa_pkcs1_sha1"
	case tls.PKCS1WithSHA256:
		return "rsa_pkcs1_sha256"
	case tls.PKCS1WithSHA384:
		return "rsa_pkcs1_sha384"
	case tls.PKCS1WithSHA512:
		return "rsa_pkcs1_sha512"
	case tls.PSSWithSHA256:
		return "rsa_pss_rsae_sha256"
	case tls.PSSWithSHA384:
		return "rsa_pss_rsae_sha384"
	case tls.PSSWithSHA512:
		return "rsa_pss_rsae_sha512"
	case tls.ECDSAWithSHA1:
		return "ecdsa_sha1"
	case tls.ECDSAWithP256AndSHA256:
		return "ecdsa_secp256r1_sha256"
	case tls.ECDSAWithP384AndSHA384:
		return "ecdsa_secp384r1_sha384"
	case tls.ECDSAWithP521AndSHA512:
		return "ecdsa_secp521r1_sha512"
	case tls.Ed25519:
		return "ed25519"
	}
	return ""
}

// schemeParts returns all names of a scheme: its own, those of the signature
// algorithm and of the key, and for ECDSA of the curve.
func schemeParts(s tls.SignatureScheme) []string {
	names := []string{schemeName(s)}
	switch s {
	case tls.PKCS1WithSHA256:
		return append(names, signatureNames(x509.SHA256WithRSA)...)
	case tls.PKCS1WithSHA384:
		return append(names, signatureNames(x509.SHA384WithRSA)...)
	case tls.PKCS1WithSHA512:
		return append(names, signatureNames(x509.SHA512WithRSA)...)
	case tls.PKCS1WithSHA1:
		return append(names, signatureNames(x509.SHA1WithRSA)...)
	case tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512:
		return append(names, "rsassa-pss", "rsa")
	case tls.ECDSAWithSHA1:
		return append(names, append(signatureNames(x509.ECDSAWithSHA1), "ec")...)
	case tls.ECDSAWithP256AndSHA256:
		return slices.Concat(names, signatureNames(x509.ECDSAWithSHA256), []string{"ec"}, curveNames(elliptic.P256()))
	case tls.ECDSAWithP384AndSHA384:
		return slices.Concat(names, signatureNames(x509.ECDSAWithSHA384), []string{"ec"}, curveNames(elliptic.P384()))
	case tls.ECDSAWithP521AndSHA512:
		return slices.Concat(names, signatureNames(x509.ECDSAWithSHA512), []string{"ec"}, curveNames(elliptic.P521()))
	case tls.Ed25519:
		return append(names, "eddsa")
	}
	return names
}

// suiteParts returns the names by which a rule can mean a cipher suite, as the
// JDK decomposes it: key exchange, authentication, cipher and MAC.
func suiteParts(suite string) []string {
	name := strings.ToLower(suite)
	parts := []string{name}
	body := strings.TrimPrefix(name, "tls_")
	exchange, cipher, found := strings.Cut(body, "_with_")
	if !found { // a suite of TLS 1.3, which names a cipher only
		exchange, cipher = "", body
	}
	if exchange != "" {
		parts = append(parts, exchange)
		parts = append(parts, strings.Split(exchange, "_")...)
	}
	i := strings.LastIndexByte(cipher, '_')
	if i < 0 {
		return parts
	}
	bulk, mac := cipher[:i], cipher[i+1:]
	parts = append(parts, bulk, strings.SplitN(bulk, "_", 2)[0])
	if mac == "sha" {
		return append(parts, "sha1", "hmacsha1")
	}
	if strings.Contains(bulk, "_cbc") {
		return append(parts, mac, "hmac"+mac)
	}
	return parts // the hash of an AEAD suite authenticates no record
}

// groupNames returns the names of a key exchange group, normalised.
func groupNames(id tls.CurveID) []string {
	switch id {
	case tls.CurveP256:
		return curveNames(elliptic.P256())
	case tls.CurveP384:
		return curveNames(elliptic.P384())
	case tls.CurveP521:
		return curveNames(elliptic.P521())
	}
	return []string{strings.ToLower(id.String())}
}
