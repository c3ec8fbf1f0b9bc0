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

// requestBody is the body of a backend's request. It passes on the trailer,
// which the server fills in at the body's end and the proxy would leave behind,
// and remembers if it was the client that broke off.
type requestBody struct {
	io.ReadCloser
	in, out *http.Request
	broken  atomic.Bool
}

type bodyKey struct{}

// setBody wraps the body of p.Out, if it has one.
func setBody(p *httputil.ProxyRequest) {
	if p.Out.Body == nil {
		return
	}
	b := &requestBody{ReadCloser: p.Out.Body, in: p.In}
	p.Out = p.Out.WithContext(context.WithValue(p.Out.Context(), bodyKey{}, b))
	b.out = p.Out
	p.Out.Body = b
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

// clientBroke reports whether reading r's body from the client failed.
func clientBroke(r *http.Request) bool {
	b, ok := r.Context().Value(bodyKey{}).(*requestBody)
	return ok && b.broken.Load()
}
