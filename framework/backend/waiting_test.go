// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestWaitsEnd: each wait that a server is told of ends by the time its request
// has been served, also where the answer comes before the body, fails or breaks.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	mux.HandleFunc("/early", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/gone", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		w.WriteHeader(http.StatusOK)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	h := newProxy(t, server.URL, nil)
	for _, path := range []string{"/", "/early", "/gone", "/broken"} {
		for _, body := range []string{"", strings.Repeat("x", 1<<20)} {
			var begun, ended atomic.Int32
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r = r.WithContext(WithInfo(r.Context(), Info{
				Awaits:   func(time.Duration) { begun.Add(1) },
				Answered: func() { ended.Add(1) },
			}))
			func() {
				defer func() { _ = recover() }() // as net/http's server does for an answer that breaks
				h.ServeHTTP(httptest.NewRecorder(), r)
			}()
			if b, e := begun.Load(), ended.Load(); b != e || b > 1 || b == 0 && body == "" {
				t.Errorf("POST %s of %d bytes: %d waits begun, %d ended", path, len(body), b, e)
			}
		}
	}
}
