// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/memory"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
	"github.com/tlsd/tlsd/plugins/sunx509"
)

// tiers are what is measured. A nil one is crypto/tls with its key.
func tiers() []*keymanager.Tier {
	all := []*keymanager.Tier{nil}
	for _, t := range []keymanager.Tier{sunx509.Tier(), pkix.Tier(), pkixcached.Tier()} {
		all = append(all, &t)
	}
	return all
}

func nameOf(t *keymanager.Tier) string {
	if t == nil {
		return "none"
	}
	return t.Name
}

// each runs f for all that is measured, with stores of so many entries.
func each[T interface {
	testing.TB
	Run(string, func(T)) bool
}](t T, entries []int, f func(T, material.Files, memory.Spec)) {
	for _, n := range entries {
		t.Run(fmt.Sprintf("entries=%d", n), func(t T) {
			files, err := material.Make(t.TempDir(), material.Spec{Entries: n})
			if err != nil {
				t.Fatal(err)
			}
			for _, tier := range tiers() {
				for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
					for _, resume := range []bool{false, true} {
						for _, sni := range []bool{false, true} {
							name := fmt.Sprintf("tier=%s/version=%s/resume=%t/sni=%t", nameOf(tier), tls.VersionName(version)[4:], resume, sni)
							t.Run(name, func(t T) {
								f(t, files, memory.Spec{Tier: tier, Version: version, Resume: resume, SNI: sni})
							})
						}
					}
				}
			}
		})
	}
}

// BenchmarkHandshake makes handshakes in memory: run it with -cpu 1.
func BenchmarkHandshake(b *testing.B) {
	each(b, []int{1, 10, 1000}, func(b *testing.B, f material.Files, s memory.Spec) {
		p, err := memory.NewPair(b.Context(), f, s)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		for b.Loop() {
			if err := p.Handshake(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
	})
}

func TestHandshake(t *testing.T) {
	each(t, []int{3}, func(t *testing.T, f material.Files, s memory.Spec) {
		p, err := memory.NewPair(t.Context(), f, s)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := p.Handshake(); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
