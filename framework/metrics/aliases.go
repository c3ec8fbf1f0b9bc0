// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tlsd/tlsd/logging"
)

// maxAliases bounds how many entries are told apart.
const maxAliases = 1000

// entry names an entry of a keystore as labels do. The zero value stands for all
// entries beyond maxAliases together.
type entry struct{ builder, alias string }

// maxAliasLabel bounds an alias, in bytes: a plugin may say anything.
const maxAliasLabel = 256

func entryOf(builder int, alias string) entry {
	return entry{strconv.Itoa(builder), label(logging.Printable(alias[:min(len(alias), maxAliasLabel)]))}
}

// aliases counts signatures by entry. It keeps the counters of each entry at
// hand: to look up labels costs more than to count.
type aliases struct {
	count   *prometheus.CounterVec
	seconds *prometheus.CounterVec

	mu    sync.RWMutex
	known map[aliasKey]*aliasCounters // guarded by mu
}

// aliasKey is an entry as a signature names it.
type aliasKey struct {
	builder int
	alias   string
}

type aliasCounters struct{ ok, refused, failed, seconds prometheus.Counter }

func newAliases() *aliases {
	return &aliases{
		count:   counter("signatures_total", "Signatures that the key process was asked for, by entry; refused: the message was no TLS handshake.", "builder_index", "alias", "result"),
		seconds: counter("signature_seconds_total", "Time that signatures took, by entry.", "builder_index", "alias"),
		known:   map[aliasKey]*aliasCounters{},
	}
}

// Describe implements prometheus.Collector.
func (a *aliases) Describe(to chan<- *prometheus.Desc) {
	a.count.Describe(to)
	a.seconds.Describe(to)
}

// Collect implements prometheus.Collector.
func (a *aliases) Collect(to chan<- prometheus.Metric) {
	a.count.Collect(to)
	a.seconds.Collect(to)
}

// of returns the counters of an entry.
func (a *aliases) of(builder int, alias string) *aliasCounters {
	key := aliasKey{builder, alias}
	a.mu.RLock()
	c := a.known[key]
	a.mu.RUnlock()
	if c != nil {
		return c
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAliases {
		return a.make(entry{}) // made each time: nobody counts so many
	}
	if a.known[key] == nil {
		a.known[key] = a.make(entryOf(builder, alias))
	}
	return a.known[key]
}

func (a *aliases) make(e entry) *aliasCounters {
	return &aliasCounters{
		ok:      a.count.WithLabelValues(e.builder, e.alias, resultOK),
		refused: a.count.WithLabelValues(e.builder, e.alias, resultRefused),
		failed:  a.count.WithLabelValues(e.builder, e.alias, resultError),
		seconds: a.seconds.WithLabelValues(e.builder, e.alias),
	}
}

// keep drops the counters of entries that are in no keystore any more, so that
// years of renewals under new names don't add up.
func (a *aliases) keep(present map[aliasKey]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.known {
		if !present[key] {
			delete(a.known, key)
			e := entryOf(key.builder, key.alias)
			labels := prometheus.Labels{"builder_index": e.builder, "alias": e.alias}
			a.count.DeletePartialMatch(labels)
			a.seconds.DeletePartialMatch(labels)
		}
	}
}
