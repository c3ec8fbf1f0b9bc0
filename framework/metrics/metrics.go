// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what happens at a framework.Server and tells Prometheus.
//
// [New] makes a [Metrics]; its Observer goes into framework.Config, and the
// Server, once there is one, to Follow. Handler is what Prometheus asks. There is
// no global registry.
//
// What labels can be is bounded: listeners and limits are the configuration's,
// results and reasons a few words, aliases those of the keystores, of which more
// than 1,000 are counted together. Nothing that a client chooses is a label.
package metrics

import (
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tlsd/tlsd/framework"
)

// Server is what is asked at each scrape; *framework.Server is one.
type Server interface {
	Ready() error
	Keys() *framework.Keys
}

// Metrics are the counters of one program. They are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	server   atomic.Pointer[Server]

	handshakes    *prometheus.CounterVec
	resumed       *prometheus.CounterVec
	handshakeTime *prometheus.HistogramVec
	selections    *prometheus.CounterVec
	signatures    *aliases
	signatureTime prometheus.Histogram

	open     *prometheus.GaugeVec
	accepted *prometheus.CounterVec
	ended    *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	in, out  *prometheus.CounterVec

	reloads    *prometheus.CounterVec
	reloadOK   *prometheus.GaugeVec
	reloadLast *prometheus.GaugeVec
}

// New returns counters that stand at zero. version is that of the program.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),

		handshakes:    counter("handshakes_total", "TLS handshakes that have ended, by how.", "listener", "result", "reason"),
		resumed:       counter("handshakes_resumed_total", "TLS handshakes that resumed a session.", "listener"),
		handshakeTime: histogram("handshake_duration_seconds", "Time that TLS handshakes took, from the connection on.", handshakeBuckets(), "listener", "result"),
		selections:    counter("selections_total", "Certificates looked for, by who answered: cache (the front, from what it knew) or key_process.", "source", "result"),
		signatures:    newAliases(),
		signatureTime: prometheus.NewHistogram(histogramOpts("signature_duration_seconds", "Time that signatures of the key process took, good or not.", signatureBuckets())),

		open:     gauge("connections_open", "Connections that are open.", "listener"),
		accepted: counter("connections_total", "Connections that were accepted.", "listener"),
		ended:    counter("connections_closed_total", "Connections that have ended, by how.", "listener", "result"),
		dropped:  counter("connections_dropped_total", "Connections that a limit kept out.", "listener", "limit"),
		in:       counter("received_bytes_total", "Bytes from clients as they were on the wire, of connections that have ended.", "listener"),
		out:      counter("sent_bytes_total", "Bytes to clients as they were on the wire, of connections that have ended.", "listener"),

		reloads:    counter("reloads_total", "Readings anew of keystores, trust stores, revocation lists and configuration.", "what", "result"),
		reloadOK:   gauge("reload_successful", "Whether the last reading was good (1): if not (0), the state before it is in use.", "what"),
		reloadLast: gauge("reload_last_success_timestamp_seconds", "When the last good reading was, in Unix time.", "what"),
	}
	m.registry.MustRegister(
		m.handshakes, m.resumed, m.handshakeTime, m.selections, m.signatures, m.signatureTime,
		m.open, m.accepted, m.ended, m.dropped, m.in, m.out, m.reloads, m.reloadOK, m.reloadLast,
		newState(m), buildInfo(version),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.begin()
	return m
}

// keystores is what Observer.Reloaded calls them.
const keystores = "keystores"

// begin makes the counters that alerts ask for, so that the first failure is a
// step from zero and no beginning.
func (m *Metrics) begin() {
	for _, result := range []string{resultOK, resultError} {
		m.reloads.WithLabelValues(keystores, result)
	}
	for _, source := range []string{"cache", "key_process"} {
		m.selections.WithLabelValues(source, resultOK)
	}
}

// Follow has the state of s told from now on: its keystores have been read. Before
// that there is none, and nothing is ready.
func (m *Metrics) Follow(s Server) {
	m.server.Store(&s)
	m.reloadOK.WithLabelValues(keystores).Set(1)
	m.reloadLast.WithLabelValues(keystores).SetToCurrentTime()
}

// maxScrapes is how many scrapes are answered at once.
const maxScrapes = 4

// Handler answers Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: 10 * time.Second,
		ErrorHandling: promhttp.ContinueOnError, // one metric that fails must not hide the rest
	})
}

func buildInfo(version string) prometheus.Collector {
	g := gauge("build_info", "Always 1: the version of tlsd and of Go that it was built with.", "version", "go_version")
	g.WithLabelValues(label(version), runtime.Version()).Set(1)
	return g
}

const namespace = "tlsd"

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOpts(name, help, buckets), labels)
}

func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}

// handshakeBuckets reach from a resumption on one machine to the handshake
// timeout, in seconds.
func handshakeBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// signatureBuckets reach from P-256 in a child to a key in some HSM, in seconds.
func signatureBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5}
}

// label returns text as a label can be: Prometheus takes UTF-8 only.
func label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
