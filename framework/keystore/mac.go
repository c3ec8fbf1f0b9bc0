// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/hmac"
	"hash"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// mac is the checked MacData of a PKCS#12 store (RFC 7292, 4).
type mac struct {
	digest []byte
	hash   func() hash.Hash
	key    func(ctx context.Context, pw password) ([]byte, error)
}

// readMAC reads MacData and checks its parameters.
func readMAC(s cryptobyte.String, work *budget) (*mac, error) {
	var seq, info, digest, salt cryptobyte.String
	if !s.ReadASN1(&seq, asn1.SEQUENCE) || !seq.ReadASN1(&info, asn1.SEQUENCE) {
		return nil, &DamagedError{Where: "MAC of the store"}
	}
	oid, params, err := readAlgorithm(&info)
	if err != nil {
		return nil, err
	}
	if !info.ReadASN1(&digest, asn1.OCTET_STRING) || !seq.ReadASN1(&salt, asn1.OCTET_STRING) {
		return nil, &DamagedError{Where: "MAC of the store"}
	}
	if oid == oidPBMAC1 {
		return readPBMAC1(params, digest, work)
	}
	iterations := int64(1) // where it is left out
	if !seq.Empty() {
		var ok bool
		if iterations, ok = readInt(&seq); !ok {
			return nil, &DamagedError{Where: "iteration count of the MAC"}
		}
	}
	return newMAC(oid, digest, salt, iterations, work)
}

// newMAC makes the MAC of RFC 7292, appendix B.4.
func newMAC(oid string, digest, salt []byte, iterations int64, work *budget) (*mac, error) {
	h := digestHash(oid)
	if h == nil {
		return nil, &UnsupportedError{Algorithm: "MAC with " + algorithmName(oid)}
	}
	if err := checkSalt(salt); err != nil {
		return nil, err
	}
	if err := work.one(iterations); err != nil {
		return nil, err
	}
	key := func(ctx context.Context, pw password) ([]byte, error) {
		secret := pw.terminated()
		defer clear(secret)
		return kdf12(ctx, h, forMAC, secret, salt, int(iterations), h().Size())
	}
	return checkDigest(&mac{digest: digest, hash: h, key: key})
}

// Bounds of a PBMAC1 key, in bytes. A key of a byte or two would let anyone
// make a MAC that passes (RFC 9879, 5).
const (
	minMACKey = 20
	maxMACKey = 64
)

// readPBMAC1 reads the parameters of PBMAC1 (RFC 9879).
func readPBMAC1(params cryptobyte.String, digest []byte, work *budget) (*mac, error) {
	var seq cryptobyte.String
	if !params.ReadASN1(&seq, asn1.SEQUENCE) {
		return nil, &DamagedError{Where: "parameters of PBMAC1"}
	}
	kdf, kdfParams, err := readAlgorithm(&seq)
	if err != nil {
		return nil, err
	}
	scheme, _, err := readAlgorithm(&seq)
	if err != nil {
		return nil, err
	}
	h := hmacHash(scheme)
	if h == nil {
		return nil, &UnsupportedError{Algorithm: "PBMAC1 with " + algorithmName(scheme)}
	}
	p, err := readPBKDF2(kdf, kdfParams, work)
	if err != nil {
		return nil, err
	}
	switch {
	case p.keySize > maxMACKey:
		return nil, &LimitError{What: "bytes of a PBMAC1 key", Value: p.keySize, Max: maxMACKey}
	case p.keySize < minMACKey:
		return nil, &DamagedError{Where: "PBMAC1 key length is missing or too short to be safe"}
	}
	key := func(ctx context.Context, pw password) ([]byte, error) { return p.derive(ctx, pw, int(p.keySize)) }
	return checkDigest(&mac{digest: digest, hash: h, key: key})
}

// checkDigest refuses a digest of a wrong length, which no password fits.
func checkDigest(m *mac) (*mac, error) {
	if len(m.digest) != m.hash().Size() {
		return nil, &DamagedError{Where: "MAC of the store has a wrong length"}
	}
	return m, nil
}

// verify returns nil if content was written under pw, else errPassword.
func (m *mac) verify(ctx context.Context, pw password, content []byte) error {
	key, err := m.key(ctx, pw)
	if err != nil {
		return err
	}
	defer clear(key)
	h := hmac.New(m.hash, key)
	h.Write(content)
	if !hmac.Equal(h.Sum(nil), m.digest) {
		return errPassword
	}
	return nil
}
