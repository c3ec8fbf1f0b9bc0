// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// Messages about failed requests.
const (
	msgUnreachable = "backend failed"
	msgTooSlow     = "backend too slow"
	msgBrokeOff    = "backend broke off while answering"
	msgClientGone  = "client went away"
)

// answerError answers a request that the backend did not. A client that has
// itself gone gets its stream reset, since there is nobody to read an answer.
func (h *HTTP) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || clientBroke(r) {
		h.report.log.Debug(msgClientGone, requestFields(r, err)...)
		panic(http.ErrAbortHandler)
	}
	if isTimeout(err) {
		h.report.failed(msgTooSlow, requestFields(r, err)...)
		plainError(w, http.StatusGatewayTimeout)
		return
	}
	h.report.failed(msgUnreachable, append(requestFields(r, err), hint(err)...)...)
	plainError(w, http.StatusBadGateway)
}

// clientBroke reports whether reading r's body from the client failed.
func clientBroke(r *http.Request) bool {
	b := bodyOf(r)
	return b != nil && b.broken.Load()
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

func requestFields(r *http.Request, err error) []zap.Field {
	return append(connFields(r.Context(), r.RemoteAddr, err), zap.String("method", r.Method))
}

// hint tells of a backend URL with the wrong scheme, as far as the error shows
// it: an HTTP/2 server's first frame or a TLS server's alert is no HTTP/1
// response.
func hint(err error) []zap.Field {
	text := err.Error()
	switch {
	case strings.Contains(text, `malformed HTTP response "\x00\x00`):
		return []zap.Field{zap.String("hint", "the backend speaks HTTP/2 only: use h2c://")}
	case strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return []zap.Field{zap.String("hint", "the backend speaks TLS: use https://")}
	}
	return nil
}

// plainError answers with nothing but the status, in words.
func plainError(w http.ResponseWriter, status int) {
	body := http.StatusText(status) + "\n"
	h := w.Header()
	clear(h) // of what a 1xx response left
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // fails only if the client is gone
}

// stdLog returns a logger for the proxy, which tells there of responses that
// ended too early.
func (r *reporter) stdLog() *log.Logger { return log.New(proxyLog{r}, "", 0) }

type proxyLog struct{ report *reporter }

func (p proxyLog) Write(line []byte) (int, error) {
	p.report.failed(msgBrokeOff, zap.ByteString(logging.FieldError, bytes.TrimSpace(line)))
	return len(line), nil
}
