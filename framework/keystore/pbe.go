// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// scheme is one password-based encryption whose parameters have been checked.
// Every format decrypts by it: PKCS#12, PKCS#8 and JCEKS.
type scheme struct {
	iterations int64
	// derive makes key and IV. It does all the work there is.
	derive func(ctx context.Context, pw password) (key, iv []byte, err error)
	block  func(key []byte) (cipher.Block, error)
}

// open decrypts ciphertext. It returns errPassword where the padding is wrong:
// that finds all but one in 256 wrong passwords, and callers look at what comes
// out too. The result is the caller's to wipe.
func (s *scheme) open(ctx context.Context, pw password, ciphertext []byte) ([]byte, error) {
	key, iv, err := s.derive(ctx, pw)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	block, err := s.block(key)
	if err != nil {
		return nil, err
	}
	return openCBC(block, iv, ciphertext)
}

// openCBC decrypts and takes off the padding (RFC 8018, 6.1.1).
func openCBC(block cipher.Block, iv, ciphertext []byte) ([]byte, error) {
	size := block.BlockSize()
	if len(iv) != size {
		return nil, &DamagedError{Where: fmt.Sprintf("initialization vector has %d bytes, not %d", len(iv), size)}
	}
	if len(ciphertext) == 0 || len(ciphertext)%size != 0 {
		return nil, &DamagedError{Where: fmt.Sprintf("ciphertext of %d bytes is not whole blocks", len(ciphertext))}
	}
	out := make([]byte, len(ciphertext))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, ciphertext)
	n := int(out[len(out)-1])
	bad := n == 0 || n > size
	for i := 1; !bad && i <= n; i++ {
		bad = out[len(out)-i] != byte(n)
	}
	if bad {
		clear(out)
		return nil, errPassword
	}
	return out[:len(out)-n], nil
}

// readScheme reads an AlgorithmIdentifier and checks its parameters, so that
// what it returns may be worked with.
func readScheme(s *cryptobyte.String, work *budget) (*scheme, error) {
	oid, params, err := readAlgorithm(s)
	if err != nil {
		return nil, err
	}
	switch oid {
	case oidPBES2:
		return readPBES2(params, work)
	case oidPBE3DES:
		return readPBES1(params, work, 24, des.NewTripleDESCipher)
	case oidPBE2DES:
		return readPBES1(params, work, 16, newTwoKeyDES)
	case oidPBERC2128:
		return readPBES1(params, work, 16, newRC2)
	case oidPBERC240:
		return readPBES1(params, work, 5, newRC2)
	case oidJCEKS:
		return readPBEJCEKS(params, work)
	}
	return nil, &UnsupportedError{Algorithm: algorithmName(oid)}
}

// readAlgorithm reads an AlgorithmIdentifier (RFC 5280, 4.1.1.2) into its
// object identifier and the undecoded rest, its parameters.
func readAlgorithm(s *cryptobyte.String) (oid string, params cryptobyte.String, err error) {
	var alg cryptobyte.String
	if !s.ReadASN1(&alg, asn1.SEQUENCE) || !readOID(&alg, &oid) {
		return "", nil, &DamagedError{Where: "algorithm identifier"}
	}
	return oid, alg, nil
}

// readPBES1 reads the parameters of PKCS#12's own schemes (RFC 7292, C): key
// and IV both come from its own derivation with SHA-1.
func readPBES1(params cryptobyte.String, work *budget, keySize int, block func([]byte) (cipher.Block, error)) (*scheme, error) {
	salt, iterations, err := readPBEParams(params, work)
	if err != nil {
		return nil, err
	}
	derive := func(ctx context.Context, pw password) (key, iv []byte, err error) {
		secret := pw.terminated()
		defer clear(secret)
		if key, err = kdf12(ctx, sha1.New, forKey, secret, salt, int(iterations), keySize); err != nil {
			return nil, nil, err
		}
		iv, err = kdf12(ctx, sha1.New, forIV, secret, salt, int(iterations), des.BlockSize)
		return key, iv, err
	}
	return &scheme{iterations: iterations, derive: derive, block: block}, nil
}

// readPBEParams reads salt and iteration count, as RFC 7292 and JCEKS have them.
func readPBEParams(params cryptobyte.String, work *budget) (salt []byte, iterations int64, err error) {
	var seq, s cryptobyte.String
	if !params.ReadASN1(&seq, asn1.SEQUENCE) || !seq.ReadASN1(&s, asn1.OCTET_STRING) {
		return nil, 0, &DamagedError{Where: "parameters of the encryption"}
	}
	iterations, ok := readInt(&seq)
	if !ok {
		return nil, 0, &DamagedError{Where: "parameters of the encryption"}
	}
	if err := checkSalt(s); err != nil {
		return nil, 0, err
	}
	// A copy: what it lies in may be a decrypted safe, which is wiped.
	return slices.Clone(s), iterations, work.one(iterations)
}

func checkSalt(salt []byte) error {
	if len(salt) > maxSalt {
		return &LimitError{What: "bytes of salt", Value: int64(len(salt)), Max: maxSalt}
	}
	return nil
}

// readPBES2 reads the parameters of PBES2 (RFC 8018, A.4). Java 8 to 10 put an
// AlgorithmIdentifier with those into their place (JDK-8202837), which Java reads
// to this day.
func readPBES2(params cryptobyte.String, work *budget) (*scheme, error) {
	var seq cryptobyte.String
	if !params.ReadASN1(&seq, asn1.SEQUENCE) ||
		seq.PeekASN1Tag(asn1.OBJECT_IDENTIFIER) && (!seq.SkipASN1(asn1.OBJECT_IDENTIFIER) || !seq.ReadASN1(&seq, asn1.SEQUENCE)) {
		return nil, &DamagedError{Where: "parameters of PBES2"}
	}
	kdf, kdfParams, err := readAlgorithm(&seq)
	if err != nil {
		return nil, err
	}
	enc, encParams, err := readAlgorithm(&seq)
	if err != nil {
		return nil, err
	}
	keySize, block := cbcCipher(enc)
	if block == nil {
		return nil, &UnsupportedError{Algorithm: "PBES2 with " + algorithmName(enc)}
	}
	iv, ok := readOctets(encParams)
	if !ok {
		return nil, &DamagedError{Where: "initialization vector of PBES2"}
	}
	iv = slices.Clone(iv)
	p, err := readPBKDF2(kdf, kdfParams, work)
	if err != nil {
		return nil, err
	}
	if p.keySize != 0 && p.keySize != int64(keySize) {
		return nil, &DamagedError{Where: fmt.Sprintf("PBKDF2 key length %d for a key of %d bytes", p.keySize, keySize)}
	}
	derive := func(ctx context.Context, pw password) (key, _ []byte, err error) {
		key, err = p.derive(ctx, pw, keySize)
		return key, iv, err
	}
	return &scheme{iterations: p.iterations, derive: derive, block: block}, nil
}

// cbcCipher returns what PBES2 encrypts with, or nil if it is not read.
func cbcCipher(oid string) (keySize int, block func([]byte) (cipher.Block, error)) {
	switch oid {
	case oidAES128CBC:
		return 16, aes.NewCipher
	case oidAES192CBC:
		return 24, aes.NewCipher
	case oidAES256CBC:
		return 32, aes.NewCipher
	case oid3DESCBC:
		return 24, des.NewTripleDESCipher
	}
	return 0, nil
}

// newTwoKeyDES is 3DES whose first key is the third too.
func newTwoKeyDES(key []byte) (cipher.Block, error) {
	if len(key) != 16 {
		return nil, errors.New("two-key 3DES key of a wrong length")
	}
	k := append(append(make([]byte, 0, 24), key...), key[:8]...)
	defer clear(k)
	return des.NewTripleDESCipher(k)
}
