// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework"
)

// BenchmarkHandshakeObserved is what is counted of one full handshake and its
// connection. A handshake over loopback takes some 300 µs of processor time with
// P-256, so that 3 µs are 1 %.
func BenchmarkHandshakeObserved(b *testing.B) {
	o := New("dev").Observer()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			const l = "0.0.0.0:443"
			o.Opened(l)
			o.Selection(true, nil)
			o.Signature(framework.SignatureEvent{Alias: "web", Duration: time.Millisecond})
			o.Handshake(framework.HandshakeEvent{Listener: l, Result: "ok", Duration: time.Millisecond})
			o.Closed(framework.ConnectionEvent{Listener: l, In: 1, Out: 1, Result: "closed"})
		}
	})
}
