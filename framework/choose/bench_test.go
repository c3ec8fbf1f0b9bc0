// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"fmt"
	"io"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

func manyEntries(b *testing.B, n int) []keymanager.Entry {
	b.Helper()
	ca := testca.NewRoot(b, testca.Spec{Name: "ca"})
	entries := make([]keymanager.Entry, n)
	for i := range entries {
		name := fmt.Sprintf("n%d.w.test", i)
		entries[i] = entry(name, ca.Issue(b, testca.Spec{DNS: []string{name}}))
	}
	return entries
}

// BenchmarkSelect shows that the cost does not grow with the store.
func BenchmarkSelect(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		entries := manyEntries(b, n)
		for what, h := range map[string]*keymanager.Hello{
			"name": modern(fmt.Sprintf("n%d.w.test", n-1)), "no_name": modern(""), "unknown_name": modern("x.test"),
		} {
			for kind, mk := range map[string]maker{"checked": New, "unchecked": NewUnchecked} {
				b.Run(fmt.Sprintf("%s/%s/entries=%d", kind, what, n), func(b *testing.B) {
					selectAll(b, mustNew(b, mk, keymanager.Env{}, entries...), h)
				})
			}
		}
	}
}

// BenchmarkNew is what a view costs once, its first index included.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{1, 1000} {
		entries := manyEntries(b, n)
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			for b.Loop() {
				c := mustNew(b, New, keymanager.Env{}, entries...)
				c.table(keymanager.RoleServer, c.now())
			}
		})
	}
}

// BenchmarkLogOff compares no logger at all with one whose debug is off.
func BenchmarkLogOff(b *testing.B) {
	entries := manyEntries(b, 10)
	info := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), zap.InfoLevel))
	for name, log := range map[string]*zap.Logger{"none": nil, "info": info.Named(logging.KeyManager)} {
		b.Run(name, func(b *testing.B) {
			selectAll(b, mustNew(b, New, keymanager.Env{Log: log}, entries...), modern("n1.w.test"))
		})
	}
}

func selectAll(b *testing.B, c *Chooser, h *keymanager.Hello) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Select(h); err != nil {
			b.Fatal(err)
		}
	}
}
