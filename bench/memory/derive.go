// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"crypto/pbkdf2"
	"crypto/sha256"

	"github.com/tlsd/tlsd/bench/material"
)

// Derive derives the key that one entry of a keystore is encrypted with: what a
// tier pays that keeps no decrypted key.
func Derive() error {
	const keyLen, saltLen = 32, 16 // AES-256, as material.Make writes
	_, err := pbkdf2.Key(sha256.New, material.Password, make([]byte, saltLen), material.Iterations, keyLen)
	return err
}
