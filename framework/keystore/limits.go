// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import "math"

// Limits bound what one file may cost. The zero value is the default.
type Limits struct {
	// Iterations is the most that one key derivation may ask for; 0 is
	// 5,000,000, the JDK's cap. All derivations of a file together may ask for
	// 40 times as many: 10,000 keys of keytool's 10,000 iterations, twice.
	Iterations int
}

const (
	defaultIterations = 5_000_000
	fileIterations    = 40 // times Iterations, for all derivations of a file

	maxFile = 64 << 20 // bytes; a store with 10,000 RSA-4096 entries has about 60 MB
	maxBags = 1 << 16  // entries and certificates: 10,000 entries with chains of five that share none
	maxSalt = 16 << 10 // bytes; 8 to 64 are usual
	maxName = 4 << 10  // bytes of an alias
)

// budget counts the derivations that a file asks for, before any is done.
type budget struct{ each, all, asked int64 }

func newBudget(l Limits) *budget {
	each := int64(l.Iterations)
	if each <= 0 {
		each = defaultIterations
	}
	return &budget{each: each, all: min(each, math.MaxInt64/fileIterations) * fileIterations}
}

// one checks the iteration count of one derivation and adds it to the sum that
// sum checks. A count that is refused is never worked on and not added.
func (b *budget) one(iterations int64) error {
	const raise = "keystore_limits.iterations raises it"
	switch {
	case iterations < 1:
		return &DamagedError{Where: "iteration count of a key derivation is below 1"}
	case iterations > b.each:
		return &LimitError{What: "iterations of a key derivation", Value: iterations, Max: b.each, Hint: raise}
	case b.asked > math.MaxInt64-iterations:
		return b.sum()
	}
	b.asked += iterations
	return nil
}

// sum checks what all derivations of the file ask for together.
func (b *budget) sum() error {
	if b.asked <= b.all {
		return nil
	}
	return &LimitError{What: "iterations of all key derivations together", Value: b.asked, Max: b.all,
		Hint: "keystore_limits.iterations raises it"}
}
