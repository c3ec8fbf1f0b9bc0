// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// requestBody is the body of a client's request on its way to the backend. It
// passes on the trailer, which the server fills in at the body's end and the
// proxy would leave behind, and remembers how reading from the client went.
type requestBody struct {
	io.ReadCloser
	in, out *http.Request // the server's, the backend's
	wait    *waiting
	ended   atomic.Bool
	broken  atomic.Bool
}

type bodyKey struct{}

// withBody returns r with a requestBody for its body.
func withBody(r *http.Request, wait *waiting) (*http.Request, *requestBody) {
	b := &requestBody{ReadCloser: r.Body, in: r, wait: wait}
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
	r.Body = b
	return r, b
}

// bodyOf returns the requestBody that r came with, or nil.
func bodyOf(r *http.Request) *requestBody {
	b, _ := r.Context().Value(bodyKey{}).(*requestBody)
	return b
}

// prepareBody readies p.Out for its body, if it has one.
func prepareBody(p *httputil.ProxyRequest) {
	b := bodyOf(p.In)
	if b == nil || p.Out.Body == nil {
		return
	}
	b.out = p.Out
	if p.Out.ContentLength < 0 || len(p.Out.Trailer) > 0 {
		// HTTP/1.1 has no trailer without chunks. And where the length is not
		// known, the transport would else read ahead to see whether there is a
		// body at all, at the same time as it writes the trailer's names.
		p.Out.ContentLength = -1
		p.Out.TransferEncoding = []string{"chunked"}
	}
}

// Read reads from the client. The transport reads a trailer after the body's
// end, in the goroutine that calls Read.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
		b.wait.begin()
		b.copyTrailer()
	case err != nil:
		b.broken.Store(true)
	}
	return n, err
}

// copyTrailer copies the fields that the client announced and that were not
// removed from the announcement.
func (b *requestBody) copyTrailer() {
	for name := range b.out.Trailer {
		if values := b.in.Trailer[name]; len(values) > 0 {
			b.out.Trailer[name] = values
		}
	}
}
