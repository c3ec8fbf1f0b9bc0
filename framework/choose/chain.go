// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"

	"github.com/tlsd/tlsd/internal/dn"
)

// chainTraits is what a choice needs to know of the certificates of a chain.
type chainTraits struct {
	signatures []signature
	issuers    []string            // canonical names, of each certificate
	parsed     []*x509.Certificate // those that crypto/x509 reads, leaf first
}

// signature is how one certificate of a chain is signed.
type signature struct {
	name    string    // of the algorithm, for people
	schemes schemeSet // any of which lets a peer verify it; empty: none can
}

// traitsOfChain reads a chain, leaf first. Of certificates above the leaf nothing
// but names and signature algorithm is needed, and crypto/x509 need not be able
// to parse them. The signature of a self-signed one at the top is left out,
// since nobody has to verify it (RFC 8446, 4.4.2.2); the JDK wants it covered too.
func traitsOfChain(leaf *x509.Certificate, chain [][]byte, m mode) (chainTraits, error) {
	var t chainTraits
	for i, der := range chain {
		var c outline
		if _, err := asn1.Unmarshal(der, &c); err != nil {
			return chainTraits{}, fmt.Errorf("certificate %d of the chain can't be read: %w", i, err)
		}
		cert := leaf
		if i > 0 {
			cert, _ = x509.ParseCertificate(der)
		}
		if cert != nil {
			t.parsed = append(t.parsed, cert)
		}
		t.issuers = append(t.issuers, dn.Canonical(c.TBS.Issuer.FullBytes))
		top := m != jdkPKIX && i == len(chain)-1 && c.selfSigned(cert)
		if s := signatureOf(c.Algorithm); !top && !slices.Contains(t.signatures, s) {
			t.signatures = append(t.signatures, s)
		}
	}
	return t, nil
}

// outline is a certificate (RFC 5280, 4.1) as far as a choice looks at each one
// of a chain: less strict than crypto/x509, which refuses negative serial
// numbers and the like.
type outline struct {
	TBS struct {
		Version                   int `asn1:"optional,explicit,default:0,tag:0"`
		Serial, Algorithm, Issuer asn1.RawValue
		Validity, Subject, Key    asn1.RawValue
	}
	Algorithm pkix.AlgorithmIdentifier
	Value     asn1.BitString
}

// selfSigned compares names, and has cert (nil if it doesn't parse) prove it as
// far as crypto/x509 can: a certificate that another key of the same name
// signed is not self-signed.
func (c *outline) selfSigned(cert *x509.Certificate) bool {
	if !bytes.Equal(c.TBS.Issuer.FullBytes, c.TBS.Subject.FullBytes) {
		return false
	}
	if cert == nil {
		return true
	}
	err := cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature)
	var insecure x509.InsecureAlgorithmError
	return err == nil || errors.As(err, &insecure) || errors.Is(err, x509.ErrUnsupportedAlgorithm)
}

// signatureOf maps the algorithm of a certificate's signature to the schemes
// that cover it. For ECDSA the hash counts and the curve doesn't; for PSS,
// either kind of issuer key is taken.
func signatureOf(alg pkix.AlgorithmIdentifier) signature {
	oid := alg.Algorithm.String()
	switch oid {
	case "1.2.840.113549.1.1.5":
		return signature{"SHA1withRSA", rsaSHA1}
	case "1.2.840.113549.1.1.14":
		return signature{"SHA224withRSA", rsaSHA224}
	case "1.2.840.113549.1.1.11":
		return signature{"SHA256withRSA", rsaSHA256}
	case "1.2.840.113549.1.1.12":
		return signature{"SHA384withRSA", rsaSHA384}
	case "1.2.840.113549.1.1.13":
		return signature{"SHA512withRSA", rsaSHA512}
	case "1.2.840.113549.1.1.10":
		return pssSignature(alg)
	case "1.2.840.10045.4.1":
		return signature{"SHA1withECDSA", ecdsaSHA1}
	case "1.2.840.10045.4.3.1":
		return signature{"SHA224withECDSA", ecdsaSHA224}
	case "1.2.840.10045.4.3.2":
		return signature{"SHA256withECDSA", ecdsaSHA256}
	case "1.2.840.10045.4.3.3":
		return signature{"SHA384withECDSA", ecdsaSHA384}
	case "1.2.840.10045.4.3.4":
		return signature{"SHA512withECDSA", ecdsaSHA512}
	case "1.3.101.112":
		return signature{"Ed25519", ed25519Pure}
	case "1.3.101.113":
		return signature{"Ed448", ed448Pure}
	case "1.2.840.10040.4.3":
		return signature{"SHA1withDSA", dsaSHA1}
	case "2.16.840.1.101.3.4.3.1":
		return signature{"SHA224withDSA", dsaSHA224}
	case "2.16.840.1.101.3.4.3.2":
		return signature{"SHA256withDSA", dsaSHA256}
	case "1.2.840.113549.1.1.4":
		return signature{name: "MD5withRSA"}
	}
	return signature{name: oid}
}

// pssSignature reads the hash out of RSASSA-PSS-params (RFC 4055, 3.1), which
// is SHA-1, and so none that TLS has a scheme for, where it is left out.
func pssSignature(alg pkix.AlgorithmIdentifier) signature {
	var params struct {
		Hash pkix.AlgorithmIdentifier `asn1:"optional,explicit,tag:0"`
	}
	s := signature{name: "RSASSA-PSS"}
	if _, err := asn1.Unmarshal(alg.Parameters.FullBytes, &params); err != nil {
		return s
	}
	switch params.Hash.Algorithm.String() {
	case "2.16.840.1.101.3.4.2.1":
		return signature{"RSASSA-PSS with SHA256", pssSHA256 | pssPSSSHA256}
	case "2.16.840.1.101.3.4.2.2":
		return signature{"RSASSA-PSS with SHA384", pssSHA384 | pssPSSSHA384}
	case "2.16.840.1.101.3.4.2.3":
		return signature{"RSASSA-PSS with SHA512", pssSHA512 | pssPSSSHA512}
	}
	return s
}
