// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/hmac"
	"encoding/binary"
	"hash"
)

// untilCheck is how many iterations pass between two looks at the context:
// well under a millisecond of work.
const untilCheck = 1024

// pbkdf2 derives size bytes by PBKDF2 (RFC 8018, 5.2). The standard library's
// takes no context, and a store may ask for seconds of work.
func pbkdf2(ctx context.Context, prf func() hash.Hash, pw, salt []byte, iterations, size int) ([]byte, error) {
	h := hmac.New(prf, pw)
	n := h.Size()
	var out []byte
	u, t := make([]byte, 0, n), make([]byte, n)
	defer func() { clear(u[:n]); clear(t) }()
	for block := uint32(1); len(out) < size; block++ {
		h.Reset()
		h.Write(salt)
		h.Write(binary.BigEndian.AppendUint32(nil, block))
		u = h.Sum(u[:0])
		copy(t, u)
		for i := 1; i < iterations; i++ {
			if i%untilCheck == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			h.Reset()
			h.Write(u)
			u = h.Sum(u[:0])
			for j, c := range u {
				t[j] ^= c
			}
		}
		out = append(out, t...)
	}
	return out[:size], ctx.Err()
}

// Purposes of PKCS#12's own derivation (RFC 7292, B.3).
const (
	forKey = 1
	forIV  = 2
	forMAC = 3
)

// kdf12 derives size bytes by PKCS#12's own derivation (RFC 7292, B.2). pw is
// UTF-16BE with its terminator.
func kdf12(ctx context.Context, newHash func() hash.Hash, purpose byte, pw, salt []byte, iterations, size int) ([]byte, error) {
	h := newHash()
	v := h.BlockSize()
	d := make([]byte, v)
	for i := range d {
		d[i] = purpose
	}
	in := append(repeat(salt, v), repeat(pw, v)...)
	a := make([]byte, 0, h.Size())
	defer func() { clear(in); clear(a[:cap(a)]) }()
	var out []byte
	for {
		h.Reset()
		h.Write(d)
		h.Write(in)
		a = h.Sum(a[:0])
		for i := 1; i < iterations; i++ {
			if i%untilCheck == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			h.Reset()
			h.Write(a)
			a = h.Sum(a[:0])
		}
		if out = append(out, a...); len(out) >= size {
			return out[:size], ctx.Err()
		}
		addToBlocks(in, repeat(a, v)[:v])
	}
}

// repeat returns b repeated to the next multiple of v bytes.
func repeat(b []byte, v int) []byte {
	if len(b) == 0 {
		return nil
	}
	out := make([]byte, (len(b)+v-1)/v*v)
	for i := 0; i < len(out); i += len(b) {
		copy(out[i:], b)
	}
	return out
}

// addToBlocks adds b+1 to each block of in, modulo the block's size.
func addToBlocks(in, b []byte) {
	for ; len(in) > 0; in = in[len(b):] {
		carry := uint16(1)
		for i := len(b) - 1; i >= 0; i-- {
			carry += uint16(in[i]) + uint16(b[i])
			in[i] = byte(carry)
			carry >>= 8
		}
	}
}
