// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// state tells at each scrape how things are.
type state struct {
	metrics *Metrics

	ready, up, watched, since, restarts, memory, generation, notAfter *prometheus.Desc

	mu      sync.Mutex          // guards what follows
	of      *framework.Keys     // that expiries are of
	at      uint64              // its generation
	read    time.Time           // when they were read
	expires map[entry]time.Time // of the leaf of each usable entry
}

// newState names what it tells of.
func newState(m *Metrics) *state {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &state{
		metrics:    m,
		ready:      desc("ready", "Whether connections are served: what /readyz says."),
		up:         desc("keymanager_up", "Whether the key process answers.", "tier"),
		watched:    desc("keymanager_watched", "Whether changes of the keystores are heard of at once."),
		since:      desc("keymanager_since_timestamp_seconds", "Since when it is as tlsd_keymanager_up says, in Unix time."),
		restarts:   desc("keymanager_restarts_total", "Key processes after the first one, or connections to an endpoint."),
		memory:     desc("keymanager_resident_memory_bytes", "Resident memory of the key process."),
		generation: desc("keystore_generation", "Number of the view of the keystores that is in use."),
		notAfter:   desc("certificate_not_after_timestamp_seconds", "End of validity of the certificate of each usable entry, in Unix time.", "builder_index", "alias"),
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.ready, s.up, s.watched, s.since, s.restarts, s.memory, s.generation, s.notAfter} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	server := s.metrics.server.Load()
	if server == nil {
		gauge(s.ready, 0)
		return
	}
	gauge(s.ready, truth((*server).Ready() == nil))
	keys := (*server).Keys()
	status := keys.Manager().Status()
	gauge(s.up, truth(status.Up), label(keys.Tier()))
	gauge(s.watched, truth(status.Watched))
	gauge(s.since, float64(status.Since.Unix()))
	to <- prometheus.MustNewConstMetric(s.restarts, prometheus.CounterValue, float64(status.Restarts))
	if bytes, ok := residentMemory(status.PID); ok {
		gauge(s.memory, float64(bytes))
	}
	gauge(s.generation, float64(keys.Generation()))
	for e, end := range s.expiries(keys) {
		gauge(s.notAfter, float64(end.Unix()), e.builder, e.alias)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

const (
	listTimeout = 2 * time.Second
	// listAgain is how long entries are believed of a key manager that doesn't
	// number its views.
	listAgain = time.Minute
)

// expiries returns when certificates end. The entries are listed once for each
// generation; while that fails, what was known is told.
func (s *state) expiries(keys *framework.Keys) map[entry]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := keys.Generation()
	if s.of == keys && s.at == at && (at != 0 || time.Since(s.read) < listAgain) {
		return s.expires
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	entries, err := keys.List(ctx)
	if err != nil {
		return s.expires // a map that was handed out is never changed
	}
	s.of, s.at, s.read = keys, at, time.Now()
	s.expires = ends(entries)
	present := map[aliasKey]bool{}
	for _, e := range entries {
		present[aliasKey{e.Builder, e.Alias}] = true
	}
	s.metrics.signatures.keep(present)
	return s.expires
}

// ends returns the end of each usable entry's certificate, and of all beyond
// maxAliases the first.
func ends(entries []keymanager.Entry) map[entry]time.Time {
	found := map[entry]time.Time{}
	for _, e := range entries {
		if !e.Usable || len(e.Chain) == 0 {
			continue
		}
		leaf, err := x509.ParseCertificate(e.Chain[0])
		if err != nil {
			continue
		}
		at := entryOf(e.Builder, e.Alias)
		if _, again := found[at]; !again && len(found) >= maxAliases {
			at = entry{}
		}
		if first, again := found[at]; !again || leaf.NotAfter.Before(first) {
			found[at] = leaf.NotAfter
		}
	}
	return found
}
