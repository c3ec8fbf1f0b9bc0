// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import "testing"

func TestServedSurvivesTicket(t *testing.T) {
	want := Served{Tier: "pkixcached", Builder: 2, Alias: "server\x00 ü", Generation: 1 << 40}
	extra := [][]byte{[]byte("someone else's"), encodeServed(&want)}
	if got := findServed(extra); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestForeignExtraIsNotServed(t *testing.T) {
	whole := encodeServed(&Served{Tier: "t", Alias: "a", Generation: 300})
	for n := range len(whole) - 1 {
		if got := findServed([][]byte{whole[:n]}); got != nil {
			t.Errorf("%d bytes of %d gave %+v", n, len(whole), got)
		}
	}
}
