// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// pbkdf2Params are checked parameters of PBKDF2 (RFC 8018, A.2).
type pbkdf2Params struct {
	salt       []byte
	iterations int64
	keySize    int64 // 0: not stated
	prf        func() hash.Hash
}

func (p *pbkdf2Params) derive(ctx context.Context, pw password, size int) ([]byte, error) {
	return pbkdf2(ctx, p.prf, pw.bytes, p.salt, int(p.iterations), size)
}

func readPBKDF2(oid string, params cryptobyte.String, work *budget) (*pbkdf2Params, error) {
	if oid != oidPBKDF2 {
		return nil, &UnsupportedError{Algorithm: "key derivation " + algorithmName(oid)}
	}
	var seq, salt cryptobyte.String
	if !params.ReadASN1(&seq, asn1.SEQUENCE) || !seq.ReadASN1(&salt, asn1.OCTET_STRING) {
		return nil, &DamagedError{Where: "parameters of PBKDF2"}
	}
	iterations, ok := readInt(&seq)
	if !ok {
		return nil, &DamagedError{Where: "parameters of PBKDF2"}
	}
	p := &pbkdf2Params{salt: slices.Clone(salt), iterations: iterations, prf: sha1.New}
	if seq.PeekASN1Tag(asn1.INTEGER) {
		if p.keySize, ok = readInt(&seq); !ok || p.keySize < 1 {
			return nil, &DamagedError{Where: "key length of PBKDF2"}
		}
	}
	if !seq.Empty() {
		prf, _, err := readAlgorithm(&seq)
		if err != nil {
			return nil, err
		}
		if p.prf = hmacHash(prf); p.prf == nil {
			return nil, &UnsupportedError{Algorithm: "PBKDF2 with " + algorithmName(prf)}
		}
	}
	if err := checkSalt(salt); err != nil {
		return nil, err
	}
	return p, work.one(iterations)
}

// hmacHash returns the hash of an HMAC that PBKDF2 and PBMAC1 may use, or nil.
func hmacHash(oid string) func() hash.Hash {
	switch oid {
	case oidHMACSHA1:
		return sha1.New
	case oidHMACSHA224:
		return sha256.New224
	case oidHMACSHA256:
		return sha256.New
	case oidHMACSHA384:
		return sha512.New384
	case oidHMACSHA512:
		return sha512.New
	}
	return nil
}

// digestHash returns the hash of a PKCS#12 MAC, or nil.
func digestHash(oid string) func() hash.Hash {
	switch oid {
	case oidSHA1:
		return sha1.New
	case oidSHA224:
		return sha256.New224
	case oidSHA256:
		return sha256.New
	case oidSHA384:
		return sha512.New384
	case oidSHA512:
		return sha512.New
	case oidSHA512224:
		return sha512.New512_224
	case oidSHA512256:
		return sha512.New512_256
	case oidSHA3224:
		return func() hash.Hash { return sha3.New224() }
	case oidSHA3256:
		return func() hash.Hash { return sha3.New256() }
	case oidSHA3384:
		return func() hash.Hash { return sha3.New384() }
	case oidSHA3512:
		return func() hash.Hash { return sha3.New512() }
	}
	return nil
}
