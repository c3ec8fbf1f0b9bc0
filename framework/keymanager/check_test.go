// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"bytes"
	"crypto/tls"
	"errors"
	"testing"
)

func tls13Message(context string, hash int) []byte {
	return append(append(bytes.Repeat([]byte{' '}, 64), context...), make([]byte, hash)...)
}

func keyExchange(curve tls.CurveID, point []byte) []byte {
	msg := append(make([]byte, 64), 3, byte(curve>>8), byte(curve), byte(len(point)))
	return append(msg, point...)
}

func point(first byte, size int) []byte {
	p := make([]byte, size)
	p[0] = first
	return p
}

func transcript(size int, types ...byte) []byte {
	var msg []byte
	for _, typ := range types {
		msg = append(msg, typ, byte(size>>16), byte(size>>8), byte(size))
		msg = append(msg, make([]byte, size)...)
	}
	return msg
}

func TestCheckLetsHandshakesThroughAndNothingElse(t *testing.T) {
	const p256 = tls.ECDSAWithP256AndSHA256
	fromClient := []byte{1, 2, 11, 12, 13, 14, 11, 16}
	stapled := []byte{1, 2, 11, 22, 12, 13, 14, 11, 16}
	server13 := tls13Message(serverContext, 32)
	tests := []struct {
		name    string
		scheme  tls.SignatureScheme
		purpose Purpose
		msg     []byte
		ok      bool
	}{
		{"server13_sha256", p256, ServerTLS13, server13, true},
		{"server13_sha384", tls.PSSWithSHA512, ServerTLS13, tls13Message(serverContext, 48), true},
		{"server13_hash_of_another_length", p256, ServerTLS13, tls13Message(serverContext, 64), false},
		{"server13_one_byte_more", p256, ServerTLS13, tls13Message(serverContext, 33), false},
		{"server13_one_byte_less", p256, ServerTLS13, tls13Message(serverContext, 31), false},
		{"server13_of_client", p256, ServerTLS13, tls13Message(clientContext, 32), false},
		{"server13_padding", p256, ServerTLS13, append([]byte{'\t'}, server13[1:]...), false},
		{"server13_pkcs1", tls.PKCS1WithSHA256, ServerTLS13, server13, false},
		{"server13_sha1", tls.ECDSAWithSHA1, ServerTLS13, server13, false},
		{"server13_unknown_scheme", 0x0a0a, ServerTLS13, server13, false},
		{"client13", p256, ClientTLS13, tls13Message(clientContext, 32), true},
		{"client13_of_server", p256, ClientTLS13, server13, false},

		{"server12_x25519", p256, ServerTLS12, keyExchange(tls.X25519, make([]byte, 32)), true},
		{"server12_p256", tls.PKCS1WithSHA256, ServerTLS12, keyExchange(tls.CurveP256, point(4, 65)), true},
		{"server12_p384", p256, ServerTLS12, keyExchange(tls.CurveP384, point(4, 97)), true},
		{"server12_p521", p256, ServerTLS12, keyExchange(tls.CurveP521, point(4, 133)), true},
		{"server12_compressed", p256, ServerTLS12, keyExchange(tls.CurveP256, point(2, 33)), false},
		{"server12_compressed_of_full_length", p256, ServerTLS12, keyExchange(tls.CurveP256, point(2, 65)), false},
		{"server12_length_of_another_curve", p256, ServerTLS12, keyExchange(tls.X25519, point(4, 65)), false},
		{"server12_unknown_curve", p256, ServerTLS12, keyExchange(21, point(4, 57)), false},
		{"server12_explicit_curve", p256, ServerTLS12, append(append(make([]byte, 64), 1), make([]byte, 35)...), false},
		{"server12_one_byte_more", p256, ServerTLS12, append(keyExchange(tls.X25519, make([]byte, 32)), 0), false},
		{"server12_one_byte_less", p256, ServerTLS12, keyExchange(tls.X25519, make([]byte, 32))[:99], false},
		{"server12_randoms_only", p256, ServerTLS12, make([]byte, 64), false},
		{"server12_sha1", tls.PKCS1WithSHA1, ServerTLS12, keyExchange(tls.X25519, make([]byte, 32)), false},

		{"client12", p256, ClientTLS12, transcript(9, fromClient...), true},
		{"client12_stapled", p256, ClientTLS12, transcript(9, stapled...), true},
		{"client12_one_byte_more", p256, ClientTLS12, append(transcript(9, fromClient...), 0), false},
		{"client12_one_byte_less", p256, ClientTLS12, transcript(9, fromClient...)[:8*13-1], false},
		{"client12_without_hello", p256, ClientTLS12, transcript(9, fromClient[1:]...), false},
		{"client12_without_key_exchange", p256, ClientTLS12, transcript(9, fromClient[:7]...), false},
		{"client12_wrong_order", p256, ClientTLS12, transcript(9, 1, 2, 11, 13, 12, 14, 11, 16), false},
		{"client12_twice_stapled", p256, ClientTLS12, transcript(9, 1, 2, 11, 22, 22, 12, 13, 14, 11, 16), false},
		{"client12_many_messages", p256, ClientTLS12, transcript(0, bytes.Repeat([]byte{1}, 5000)...), false},
		{"client12_at_the_limit", p256, ClientTLS12, transcript(maxClientTLS12/8-4, fromClient...), true},
		{"client12_over_the_limit", p256, ClientTLS12, transcript(maxClientTLS12/8-3, fromClient...), false},

		{"no_purpose", p256, 0, server13, false},
		{"unknown_purpose", p256, 9, server13, false},
		{"empty", p256, ServerTLS13, nil, false},
		{"empty12", p256, ServerTLS12, nil, false},
		{"empty_client12", p256, ClientTLS12, nil, false},
		{"digest", p256, ServerTLS13, make([]byte, 32), false},
		{"token", p256, ServerTLS12, []byte("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := (&SignRequest{Scheme: tt.scheme, Purpose: tt.purpose, Message: tt.msg}).Check()
			if (err == nil) != tt.ok {
				t.Fatalf("Check = %v, want ok = %v", err, tt.ok)
			}
			if err != nil && !errors.Is(err, ErrNotHandshake) {
				t.Errorf("Check = %v, which does not wrap ErrNotHandshake", err)
			}
		})
	}
}

func FuzzCheckNeverPanics(f *testing.F) {
	f.Add(byte(ServerTLS13), tls13Message(serverContext, 32))
	f.Add(byte(ServerTLS12), keyExchange(tls.CurveP256, point(4, 65)))
	f.Add(byte(ClientTLS12), transcript(1, 1, 2, 11, 12, 13, 14, 11, 16))
	f.Fuzz(func(t *testing.T, purpose byte, msg []byte) {
		r := &SignRequest{Scheme: tls.Ed25519, Purpose: Purpose(purpose), Message: msg}
		if r.Check() == nil && len(msg) < 32 {
			t.Errorf("%d bytes pass as %v", len(msg), r.Purpose)
		}
	})
}
