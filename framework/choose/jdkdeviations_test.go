// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// deviations is a set of the numbered ways in which we differ from Java on
// purpose (docs/choosing.md). Number 6, how aliases are spelled, changes no
// choice.
type deviations uint16

const (
	devUsage      deviations = 1 << 1 // an EC server key needs no keyAgreement
	devRanking    deviations = 1 << 2 // ranking across key types and keystores
	devSelfSigned deviations = 1 << 3 // a self-signed top is judged by nobody
	devConditions deviations = 1 << 4 // usage and denyAfter are honoured
	devStoreOrder deviations = 1 << 5 // sunx509: store order, not hash order
	devSchemes    deviations = 1 << 7 // chain signatures by scheme
	devSigning    deviations = 1 << 8 // single schemes count, not types of keys
	devNames      deviations = 1 << 9 // exact before wildcard, and what matches

	checkedDeviations   = devUsage | devRanking | devSelfSigned | devConditions | devSchemes | devSigning | devNames
	uncheckedDeviations = devStoreOrder | devSigning
)

func (d deviations) has(one deviations) bool { return d&one != 0 }

func (d deviations) String() string {
	var numbers []string
	for n := range 16 {
		if d.has(1 << n) {
			numbers = append(numbers, strconv.Itoa(n))
		}
	}
	return strings.Join(numbers, "+")
}

// explain returns the smallest set of deviations that makes Java's choice ours.
func explain(t *testing.T, q *question, sunx509 bool, want answer) (deviations, bool) {
	t.Helper()
	all := checkedDeviations
	if sunx509 {
		all = uncheckedDeviations
	}
	var sets []deviations
	for d := deviations(0); d <= all; d++ {
		if d&^all == 0 {
			sets = append(sets, d)
		}
	}
	slices.SortStableFunc(sets, func(a, b deviations) int { return bits.OnesCount16(uint16(a)) - bits.OnesCount16(uint16(b)) })
	for _, d := range sets {
		if sameOutcome(newModel(t, q, d, sunx509).answer(), want) {
			return d, true
		}
	}
	return 0, false
}

// sameOutcome compares what peers see: an entry that can't sign ends a
// handshake like none.
func sameOutcome(a, b answer) bool {
	if a.failed || b.failed {
		return a.failed == b.failed
	}
	return a.entry == b.entry
}
