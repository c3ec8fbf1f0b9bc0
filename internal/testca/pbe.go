// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"unicode/utf16"
)

// Object identifiers of RFC 8018 and of NIST.
var (
	oidPBES2      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	oidHMACSHA256 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	oidAES256CBC  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 42}
	oidSHA256     = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
)

// encrypt returns the AlgorithmIdentifier, DER, and the ciphertext.
func (w *writer) encrypt(plain []byte, password string) (algorithm, ciphertext []byte) {
	salt, iv := random(16), random(aes.BlockSize)
	key, err := pbkdf2.Key(sha256.New, password, salt, w.iterations, 32)
	if err != nil {
		w.t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		w.t.Fatal(err)
	}
	ciphertext = pad(plain)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(ciphertext, ciphertext)

	prf := sequence(der(oidHMACSHA256), der(asn1.NullRawValue))
	kdf := sequence(der(oidPBKDF2), sequence(der(salt), der(w.iterations), prf))
	scheme := sequence(der(oidAES256CBC), der(iv))
	params := sequence(kdf, scheme)
	if w.oldPBES2 {
		params = sequence(der(oidPBES2), params)
	}
	return sequence(der(oidPBES2), params), ciphertext
}

// pad pads by PKCS #7, always copying.
func pad(b []byte) []byte {
	n := aes.BlockSize - len(b)%aes.BlockSize
	padded := append(make([]byte, 0, len(b)+n), b...)
	for range n {
		padded = append(padded, byte(n))
	}
	return padded
}

// macData returns MacData over the authenticated safe, RFC 7292, 5.1.
func (w *writer) macData(authSafe []byte) []byte {
	salt := random(16)
	mac := hmac.New(sha256.New, macKey(w.password, salt, w.iterations))
	mac.Write(authSafe)
	algorithm := sequence(der(oidSHA256), der(asn1.NullRawValue))
	digestInfo := sequence(algorithm, der(mac.Sum(nil)))
	return sequence(digestInfo, der(salt), der(w.iterations))
}

// macKey derives a MAC key by RFC 7292, appendix B.2. One round gives as many
// bytes as are needed, so that step 6C has nothing to do.
func macKey(password string, salt []byte, iterations int) []byte {
	const block, purpose = sha256.BlockSize, 3
	input := make([]byte, 0, 4*block)
	for range block {
		input = append(input, purpose)
	}
	input = append(input, fill(salt, block)...)
	input = append(input, fill(append(utf16BE(password), 0, 0), block)...)
	sum := sha256.Sum256(input)
	for range iterations - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return sum[:]
}

// fill repeats b up to the next multiple of block.
func fill(b []byte, block int) []byte {
	n := (len(b) + block - 1) / block * block
	out := make([]byte, n)
	for i := range out {
		out[i] = b[i%len(b)]
	}
	return out
}

func utf16BE(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return b
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
