// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/cipher"
	"crypto/md5"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	"crypto/aes"
	"crypto/des"
)

// dekKey is a PEM key encrypted in the way of RFC 1421 as OpenSSL's traditional
// formats have it: a name and an IV in the header DEK-Info, and a key made by
// one round of MD5.
type dekKey struct {
	keySize    int
	block      func([]byte) (cipher.Block, error)
	iv         []byte
	ciphertext []byte
}

func readDEK(b *pem.Block) (sealed, error) {
	name, ivText, _ := strings.Cut(b.Headers["DEK-Info"], ",")
	k := dekKey{ciphertext: b.Bytes}
	switch strings.ToUpper(strings.TrimSpace(name)) {
	case "AES-128-CBC":
		k.keySize, k.block = 16, aes.NewCipher
	case "AES-192-CBC":
		k.keySize, k.block = 24, aes.NewCipher
	case "AES-256-CBC":
		k.keySize, k.block = 32, aes.NewCipher
	case "DES-EDE3-CBC":
		k.keySize, k.block = 24, des.NewTripleDESCipher
	case "":
		return nil, &DamagedError{Where: "header DEK-Info is missing"}
	default:
		return nil, &UnsupportedError{Algorithm: fmt.Sprintf("%.40q in DEK-Info", name)}
	}
	iv, err := hex.DecodeString(strings.TrimSpace(ivText))
	if err != nil || len(iv) < 8 {
		return nil, &DamagedError{Where: "initialization vector in DEK-Info"}
	}
	k.iv = iv
	return k, nil
}

func (k dekKey) encrypted() bool { return true }

func (k dekKey) unseal(_ context.Context, pw password) ([]byte, error) {
	var key, d []byte
	for len(key) < k.keySize {
		h := md5.New()
		h.Write(d)
		h.Write(pw.bytes)
		h.Write(k.iv[:8])
		d = h.Sum(nil)
		key = append(key, d...)
	}
	defer clear(key)
	block, err := k.block(key[:k.keySize])
	if err != nil {
		return nil, err
	}
	der, err := openCBC(block, k.iv, k.ciphertext)
	if err != nil {
		return nil, err
	}
	if !isWhole(der) {
		clear(der)
		return nil, errPassword
	}
	return der, nil
}
