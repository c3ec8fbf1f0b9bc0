// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"testing"
)

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

// A server name that reads as what is revoked is still a name.
func TestBoundToIsOfFixedParts(t *testing.T) {
	listed := &site{revocation: &revocation{digest: [32]byte([]byte("0123456789abcdef0123456789abcdef"))}}
	name := string(listed.revocation.digest[:]) + "a.test"
	if bytes.Equal(boundTo(listed, "a.test"), boundTo(new(site), name)) {
		t.Error("sites with and without revocation lists share sessions")
	}
}
