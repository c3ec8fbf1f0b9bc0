// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/net/http2"
)

// accepting accepts connections and lets f have each.
func accepting(t testing.TB, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go f(conn)
		}
	}()
	return l.Addr().String()
}

func TestFailureTellsTheClientNothing(t *testing.T) {
	w := newWorld(t)
	dead := deadAddress(t)
	silent := accepting(t, func(net.Conn) {})
	garbage := accepting(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		fmt.Fprint(c, "220 smtp ready\r\n")
		c.Close()
	})
	grpc := accepting(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_ = http2.NewFramer(c, c).WriteSettings()
		c.Close()
	})
	tests := []struct {
		name, target   string
		status         int
		msg, err, hint string
	}{
		{"down", "http://" + dead, 502, msgUnreachable, "connection refused", ""},
		{"down-h2c", "h2c://" + dead, 502, msgUnreachable, "connection refused", ""},
		{"no-socket", "http+unix:/nonexistent/app.sock", 502, msgUnreachable, "/nonexistent/app.sock", ""},
		{"silent", "http://" + silent, 504, msgTooSlow, "timeout", ""},
		{"silent-h2c", "h2c://" + silent, 504, msgTooSlow, "timeout", ""},
		{"silent-tls", "https://" + silent, 504, msgTooSlow, "timeout", ""},
		{"not-http", "http://" + garbage, 502, msgUnreachable, "malformed", ""},
		{"h2c-only", "http://" + h2cBackend(t, echo), 502, msgUnreachable, "", ""},
		{"grpc", "http://" + grpc, 502, msgUnreachable, "malformed", "use h2c://"},
		{"too-large-header", plainBackend(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*MaxHeaderBytes))
		}), 502, msgUnreachable, "exceeded", ""},
		{"h2c-to-http1", "h2c://" + garbage, 502, msgUnreachable, "", ""},
		{"tls-backend", strings.Replace(w.front(t, http.HandlerFunc(echo)), "https", "http", 1), 400, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log, logs := observed()
			url := w.front(t, newProxy(t, tt.target, func(c *HTTPConfig) {
				c.Log = log
				if strings.HasPrefix(tt.name, "silent") {
					c.FirstByte, c.ConnectTimeout = 100*time.Millisecond, 100*time.Millisecond
				}
			}))
			res, err := w.httpClient(t, true, false).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != tt.status {
				t.Fatalf("status %d, want %d; %v", res.StatusCode, tt.status, logs.All())
			}
			if tt.msg == "" {
				return
			}
			if want := http.StatusText(tt.status) + "\n"; string(body) != want {
				t.Errorf("body %q, want %q", body, want)
			}
			line := onlyWarning(t, logs)
			fields := line.ContextMap()
			if line.Message != tt.msg || !strings.Contains(fields["error"].(string), tt.err) || fields["backend"] != tt.target {
				t.Errorf("log %q %v", line.Message, fields)
			}
			if hint, _ := fields["hint"].(string); !strings.Contains(hint, tt.hint) {
				t.Errorf("hint %q, want %q, of %v", hint, tt.hint, fields)
			}
		})
	}
}

func onlyWarning(t *testing.T, logs *observer.ObservedLogs) observer.LoggedEntry {
	t.Helper()
	warnings := logs.Filter(func(e observer.LoggedEntry) bool { return e.Level >= zap.WarnLevel }).All()
	if len(warnings) != 1 {
		t.Fatalf("%d warnings: %v", len(warnings), warnings)
	}
	return warnings[0]
}

func TestBackendBackAgainWorksAtOnce(t *testing.T) {
	w := newWorld(t)
	addr := deadAddress(t)
	url := w.front(t, newProxy(t, "http://"+addr, nil))
	client := w.httpClient(t, false, false)
	status := func() int {
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for range 3 {
		if got := status(); got != http.StatusBadGateway {
			t.Errorf("down: status %d", got)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(echo)}
		go s.Serve(l)
		if got := status(); got != http.StatusOK {
			t.Errorf("back: status %d", got)
		}
		s.Close()
	}
}

func TestTruncatedAnswerIsNotWhole(t *testing.T) {
	w := newWorld(t)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "100")
		}
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	log, logs := observed()
	url := w.front(t, newProxy(t, backend, func(c *HTTPConfig) { c.Log = log }))
	bothVersions(t, func(t *testing.T, h2 bool) {
		for _, path := range []string{"/length", "/chunked"} {
			res, err := w.httpClient(t, h2, false).Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil || string(body) != "half" {
				t.Errorf("%s: got %q, %v", path, body, err)
			}
		}
	})
	if onlyWarning(t, logs).Message != msgBrokeOff {
		t.Error(logs.All())
	}
}

func TestClientThatGoesAwayIsNoFailure(t *testing.T) {
	started, gone := make(chan bool), make(chan bool)
	backend := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/answering" {
			fmt.Fprint(w, "first")
			_ = http.NewResponseController(w).Flush()
		}
		started <- true
		if r.URL.Path == "/uploading" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		<-r.Context().Done()
		gone <- true
	}
	log, logs := observed()
	eachBackendLogging(t, log, backend, func(t *testing.T, _ world, client *http.Client, url string) {
		for _, path := range []string{"/waiting", "/answering", "/uploading"} {
			ctx, cancel := context.WithCancel(t.Context())
			var body io.Reader
			if path == "/uploading" {
				body = io.MultiReader(strings.NewReader("part"), waitFor(ctx))
			}
			done := make(chan error)
			go func() { done <- postAndRead(ctx, client, url+path, body) }()
			<-started
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", path, err)
			}
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Errorf("%s: the backend is still asked", path)
			}
		}
	})
	for _, e := range logs.All() {
		if e.Level > zap.DebugLevel {
			t.Errorf("logged %q %v", e.Message, e.ContextMap())
		}
	}
}

func postAndRead(ctx context.Context, client *http.Client, url string, body io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, "POST", url, body)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	return err
}

// waitFor is a reader that has nothing until ctx ends.
func waitFor(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return r
}

func TestFailuresAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logs := observed()
		r := newReporter(log, Target{})
		for range 25 { // one each 100 ms
			r.failed("down")
			time.Sleep(100 * time.Millisecond)
		}
		var suppressed []any
		for _, e := range logs.All() {
			suppressed = append(suppressed, e.ContextMap()["suppressed"])
		}
		if got := fmt.Sprint(suppressed); got != "[<nil> 9 9]" {
			t.Errorf("suppressed %s", got)
		}
	})
}
