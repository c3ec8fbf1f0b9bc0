// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

const script = `1234 
	           28e94 runtime.(*mcentral).cacheSpan
	           8b74c runtime.mallocgc
	          2c02d2 crypto/tls.(*serverHandshakeStateTLS13).handshake
	           95e81 runtime.goexit.abi0

1240 
	          92e3aa crypto/internal/fips140/edwards25519/field.feSquare.abi0
	          1993ef crypto/ecdh.(*x25519Curve).NewPrivateKey
	          2c0ca5 crypto/tls.(*serverHandshakeStateTLS13).processClientHello
	           95e81 runtime.goexit.abi0

1240 
	          1 crypto/internal/fips140/hmac.New[go.shape.interface { BlockSize() int }]
`

func TestReadStacks(t *testing.T) {
	all, err := ReadStacks(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	if len(all[1234]) != 1 || len(all[1240]) != 2 {
		t.Fatalf("%v", all)
	}
	want := Stack{"runtime.goexit", "tls.(*serverHandshakeStateTLS13).handshake", "runtime.mallocgc", "runtime.(*mcentral).cacheSpan"}
	if got := all[1234][0]; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := all[1240][1]; !slices.Equal(got, Stack{"hmac.New"}) {
		t.Errorf("got %q", got)
	}
	if _, err := ReadStacks(strings.NewReader("tlsd\n")); err == nil {
		t.Error("a head without a process id was read")
	}
}

func TestSharesGoByTheMostSpecialFunction(t *testing.T) {
	counts := Shares([]Stack{
		{"runtime.goexit", "tls.(*Conn).serverHandshake", "ecdh.(*x25519Curve).ECDH"},
		{"runtime.goexit", "plugin.(*lane).ask", "poll.(*FD).Write"},
		{"runtime.goexit", "tls.(*Conn).Write", "poll.(*FD).Write"},
		{"runtime.goexit", "tls.(*Conn).Write", "runtime.mallocgc", "runtime.gcAssistAlloc"},
		{"main.main"},
	})
	want := map[string]int{"X25519": 1, "the hop": 1, "network": 1, "garbage collection": 1, Other: 1}
	if !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	for kind := range counts {
		if !slices.Contains(Kinds(), kind) {
			t.Errorf("%q is none of Kinds", kind)
		}
	}
}

func TestFlameIsXML(t *testing.T) {
	var b strings.Builder
	if err := WriteFlame(&b, "a & b", []Stack{{"main.main", "http.(*conn).serve[…]<x>"}, {"main.main"}}); err != nil {
		t.Fatal(err)
	}
	titles := 0
	for dec := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "title" {
			titles++
		}
	}
	if titles != 2 || !strings.Contains(b.String(), "serve[…]&lt;x&gt;: 50.0 %") {
		t.Errorf("%d functions\n%s", titles, b.String())
	}
}

func TestReadCalls(t *testing.T) {
	calls, err := ReadCalls(strings.NewReader(`% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ------------------
 63.22    0.351550         263      1335        29 futex
  9.27    0.051560          48      1066           write
------ ----------- ----------- --------- --------- ------------------
100.00    0.556081          43      2401        29 total
`))
	if err != nil || !maps.Equal(calls, map[string]int{"futex": 1335, "write": 1066}) {
		t.Errorf("got %v, %v", calls, err)
	}
}
