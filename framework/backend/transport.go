// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

const (
	// idleTimeout is how long a connection to a backend is kept for the next
	// request. A request on a connection that the backend is just closing
	// fails, and one with a body can't be sent again; the shortest default of
	// common servers is Node's 5 s.
	idleTimeout = 4 * time.Second

	// idleConns is how many connections are kept so.
	idleConns = 256

	// continueTimeout is how long a request that expects 100-continue waits
	// for a backend that knows nothing of it.
	continueTimeout = time.Second

	// pingAfter and pingTimeout find an HTTP/2 connection whose other end is
	// gone without a word.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second

	copyBuffer = 32 << 10 // bytes
)

// transport sends requests to one backend.
type transport struct {
	main    *http.Transport
	upgrade *http.Transport // requests with Upgrade, which HTTP/2 has not
}

func newTransport(cfg HTTPConfig) *transport {
	var main, upgrade http.Protocols
	upgrade.SetHTTP1(true)
	switch cfg.Target.Scheme {
	case SchemeH2C:
		main.SetUnencryptedHTTP2(true)
	case SchemeHTTPS:
		main.SetHTTP1(true)
		main.SetHTTP2(true)
	default:
		t := httpTransport(cfg, upgrade)
		return &transport{main: t, upgrade: t}
	}
	return &transport{main: httpTransport(cfg, main), upgrade: httpTransport(cfg, upgrade)}
}

func httpTransport(cfg HTTPConfig, p http.Protocols) *http.Transport {
	connect := orDefault(cfg.ConnectTimeout, defaultConnectTimeout)
	t := &http.Transport{
		Protocols:              &p,
		DialContext:            dialer{target: cfg.Target, timeout: connect}.dial,
		TLSHandshakeTimeout:    connect,
		ResponseHeaderTimeout:  orDefault(cfg.FirstByte, defaultFirstByte),
		ExpectContinueTimeout:  continueTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    idleConns,
		MaxResponseHeaderBytes: MaxHeaderBytes,
		DisableCompression:     true, // the body passes as it is
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if cfg.Target.TLS() {
		t.TLSClientConfig = clientTLS(cfg.TLS, cfg.Target)
	}
	return t
}

// RoundTrip sends r.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.upgrade.RoundTrip(r)
	}
	return t.main.RoundTrip(r)
}

func (t *transport) closeIdle() {
	t.main.CloseIdleConnections()
	t.upgrade.CloseIdleConnections()
}

// bufferPool keeps copy buffers, so that a response costs none.
type bufferPool struct{ pool sync.Pool }

func newBufferPool() httputil.BufferPool {
	return &bufferPool{pool: sync.Pool{New: func() any { return new([copyBuffer]byte) }}}
}

func (p *bufferPool) Get() []byte  { return p.pool.Get().(*[copyBuffer]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[copyBuffer]byte)(b)) }
