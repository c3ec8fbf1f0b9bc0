// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/tlsd/tlsd/framework/backend"
)

// headerTimeout is how long a client may take over the header of one request,
// and over the first one to begin with.
const headerTimeout = time.Minute

// maxStreams is how many requests an HTTP/2 client may have under way, each of
// which may take a connection to the backend: the least that RFC 9113, 6.5.2,
// recommends.
const maxStreams = 100

// newWeb returns the HTTP server of a listener. It is given connections whose
// handshake is done, and asks for the handler anew for each request, so that a
// reload reaches connections that stay open; limits stay what they are now.
func newWeb(ctx context.Context, l *listener, limits Limits) *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(l.serveHTTP),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       cmp.Or(limits.Idle, limits.Lifetime),
		MaxHeaderBytes:    backend.MaxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          log.New(&httpLog{log: l.log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         func(c net.Conn, s http.ConnState) { connOf(c).phase.Store(int32(s)) },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			own := connOf(c)
			ctx = context.WithValue(ConnContext(ctx, c), connKey{}, own)
			return backend.WithInfo(ctx, own.info())
		},

		DisableGeneralOptionsHandler: true, // OPTIONS * is for the backend
	}
}

// connKey is the context key of a request's *conn.
type connKey struct{}

// serveHTTP hands a request to the site of its connection, unless its Host is
// for another, or a reload has made rules that its client doesn't meet: who takes
// that name, or this one still, connects anew and is held to what counts there (RFC
// 9110, 15.5.20). Who meets the new rules gets one more answer on this connection.
func (l *listener) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !isHost(r.Host) {
		http.Error(w, "400 Bad Request: malformed Host", http.StatusBadRequest)
		return
	}
	own := r.Context().Value(connKey{}).(*conn)
	own.requests.Add(1)
	if own.retired.Load() || l.server.drains.Load() {
		w = lastAnswer{w}
	}
	route, began := l.route.Load(), own.site
	here := route.siteOf(own.state.ServerName)
	switch {
	case here.handler == nil || here.rules != began.rules && !here.admits(own.state):
		http.Error(lastAnswer{w}, "421 Misdirected Request: other rules count here than when this connection began: connect anew", http.StatusMisdirectedRequest)
		return
	case route.misdirects(r.Host, here):
		http.Error(w, "421 Misdirected Request: this connection is for another host", http.StatusMisdirectedRequest)
		return
	case here.revocation != began.revocation && here.revocation.check(own.state.VerifiedChains) != nil:
		http.Error(lastAnswer{w}, "403 Forbidden: the client certificate is revoked, or the revocation list of its issuer is out of date", http.StatusForbidden)
		return
	}
	if here.rules != began.rules {
		w = lastAnswer{w}
	}
	here.handler.ServeHTTP(w, r)
}

// isHost refuses what is no Host but may become another name further on.
// net/http looks at HTTP/1 only, and its client, on the way to the backend, makes
// a.test of one in full-width letters; a backend that reads a URL does so of
// x@a.test and %61.test.
func isHost(host string) bool {
	return httpguts.ValidHostHeader(host) && !strings.ContainsAny(host, "@%")
}

// httpLog is where net/http complains: about a handler that panicked, which is
// a fault of ours, and about clients.
type httpLog struct {
	log    *zap.Logger
	panics limitedLines // by version of HTTP
}

func (h *httpLog) Write(line []byte) (int, error) {
	level := zap.DebugLevel
	if bytes.HasPrefix(line, []byte("http: panic")) || bytes.HasPrefix(line, []byte("http2: panic")) {
		version, _, _ := bytes.Cut(line, []byte(":"))
		if _, ok := h.panics.pass(string(version)); ok {
			level = zap.ErrorLevel
		}
	}
	h.log.Log(level, "http server", zap.ByteString("text", bytes.TrimSpace(line)))
	return len(line), nil
}

// handed is a net.Listener whose connections are put into it.
type handed struct {
	conns chan net.Conn
	addr  net.Addr
	done  chan struct{}
	once  sync.Once
}

func newHanded(addr net.Addr) *handed {
	return &handed{conns: make(chan net.Conn), addr: addr, done: make(chan struct{})}
}

// put hands c to whoever accepts, or closes it if nobody does any more.
func (h *handed) put(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		_ = c.Close()
	}
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *handed) Addr() net.Addr { return h.addr }

// answerPlaintext tells a client that spoke HTTP to the TLS port what is wrong,
// as net/http's own server does.
func answerPlaintext(e tls.RecordHeaderError) {
	switch string(e.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		_, _ = io.WriteString(e.Conn, "HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\nThis port speaks HTTPS: use https:// in the URL.\n")
	}
}
