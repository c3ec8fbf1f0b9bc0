// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"time"

	"go.uber.org/zap"
)

// MaxHeaderBytes is how much header a request or a response may have. The
// server in front of [HTTP] is given it as http.Server.MaxHeaderBytes and
// answers 431 beyond; a response beyond is a 502.
const MaxHeaderBytes = 1 << 20

// HTTPConfig is how an HTTP backend is reached and what it is told.
type HTTPConfig struct {
	Target Target // of KindHTTP

	// TLS is used for https: trusted certificates, name, client certificate.
	// It is cloned. Nil: the system's trusted certificates; ServerName empty:
	// the target's host.
	TLS *tls.Config

	ConnectTimeout time.Duration // TCP and TLS, each; 0: 5 s
	FirstByte      time.Duration // from the end of the request to the end of the response's header; 0: 60 s

	ClientHeaders  ClientHeaders  // zero: DefaultClientHeaders
	TrustedProxies []netip.Prefix // whose X-Forwarded-* and Forwarded are believed

	Log *zap.Logger // nil: none
}

// HTTP is a reverse proxy to one backend, an http.Handler for HTTP/1.1 and
// HTTP/2 requests. It is safe for concurrent use.
//
// Requests and responses are streamed both ways, trailers included, and passed
// on unchanged but for what a proxy must change: hop-by-hop fields, the
// forwarding fields, and those that tell of the client's certificate. Host stays
// the client's. A request that was sent may be sent again only if it is
// idempotent and has no body.
//
// A backend that can't be reached is a 502, one that is too slow a 504; neither
// tells the client why, the log does.
type HTTP struct {
	target    Target
	transport *transport
	proxy     *httputil.ReverseProxy
	report    *reporter
	wait      time.Duration // for an answer at most: to connect, and for its first byte
}

// NewHTTP returns the reverse proxy that cfg describes. It opens no connection.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	if cfg.Target.Kind() != KindHTTP {
		return nil, fmt.Errorf("backend %q is not an HTTP backend", cfg.Target)
	}
	client, err := newClientFields(cfg.ClientHeaders)
	if err != nil {
		return nil, err
	}
	h := &HTTP{
		target:    cfg.Target,
		transport: newTransport(cfg),
		report:    newReporter(cfg.Log, cfg.Target),
	}
	h.wait = 2*orDefault(cfg.ConnectTimeout, defaultConnectTimeout) + orDefault(cfg.FirstByte, defaultFirstByte)
	rw := rewriter{target: cfg.Target, client: client, trusted: cfg.TrustedProxies}
	h.proxy = &httputil.ReverseProxy{
		Rewrite:        rw.rewrite,
		Transport:      h.transport,
		BufferPool:     newBufferPool(),
		ModifyResponse: streamed,
		ErrorHandler:   h.answerError,
		ErrorLog:       h.report.stdLog(),
	}
	return h, nil
}

// Close closes connections that are idle. Requests in flight go on; those that
// come later still work.
func (h *HTTP) Close() error {
	h.transport.closeIdle()
	return nil
}

// ServeHTTP passes r on and its answer back.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		plainError(w, http.StatusNotImplemented) // there is nothing here to tunnel to
		return
	}
	r = h.withoutUpgrade(r)
	wait := &waiting{ctx: r.Context(), most: h.wait}
	defer wait.end()
	if r.ContentLength == 0 {
		wait.begin()
		h.proxy.ServeHTTP(answer{ResponseWriter: w, wait: wait}, r)
		return
	}
	r, body := withBody(r, wait)
	if r.ProtoMajor != 1 {
		h.proxy.ServeHTTP(answer{ResponseWriter: w, wait: wait}, r)
		return
	}
	h.serveFullDuplex(answer{ResponseWriter: w, wait: wait, unread: body}, r)
}

// serveFullDuplex serves an HTTP/1 request with a body. By default net/http's
// server reads what is left of the body when the response begins, and so would
// take from the backend what the backend has yet to read. In full duplex it
// leaves the body alone, and the body must be closed before the handler
// returns, or reading the next request panics (golang/go#68560); closing may
// wait for the client, so that the response goes out first.
func (h *HTTP) serveFullDuplex(w answer, r *http.Request) {
	rc := http.NewResponseController(w)
	if err := rc.EnableFullDuplex(); err != nil {
		h.report.log.Debug("no full duplex", zap.Error(err))
	}
	h.proxy.ServeHTTP(w, r)
	_ = rc.Flush() // an error shows in the server's own writing
	r.Body.Close()
}

// streamed makes the proxy flush each piece of a response's body at once. It
// does so by itself for a body of unknown length, and must not for an empty
// one: the flush would race with the end of the stream, and a gRPC client takes
// a header that doesn't end the stream, followed by nothing, as a broken answer.
//
// A response with a trailer loses its Content-Length, because HTTP/1.1 sends a
// trailer only after chunks.
func streamed(res *http.Response) error {
	if res.ContentLength > 0 {
		res.ContentLength = -1 // the field only; the header keeps its length
	}
	if len(res.Trailer) > 0 {
		res.Header.Del("Content-Length")
	}
	return nil
}

// answer is how the proxy answers a client.
type answer struct {
	http.ResponseWriter
	wait   *waiting
	unread *requestBody // of an HTTP/1 request; nil: nothing to read
}

// WriteHeader keeps net/http's server from adding a Content-Type that the
// backend did not send, and tells an HTTP/1 client whose request is answered
// before it was read that the connection ends: the server may close it rather
// than read the rest, and in full duplex says so to nobody.
func (w answer) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.wait.end()
	}
	h := w.Header()
	if _, ok := h["Content-Type"]; !ok && code >= http.StatusOK {
		h["Content-Type"] = nil
	}
	if w.unread != nil && !w.unread.ended.Load() && code >= http.StatusOK {
		h.Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap serves http.ResponseController.
func (w answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
