// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// eachBackend runs f with a proxy's URL for an HTTP/1.1 and an h2c backend that
// serve h, and with a client of each version.
func eachBackend(t *testing.T, h http.HandlerFunc, f func(t *testing.T, w world, client *http.Client, url string)) {
	t.Helper()
	eachBackendLogging(t, zap.NewNop(), h, f)
}

func eachBackendLogging(t *testing.T, log *zap.Logger, h http.HandlerFunc, f func(t *testing.T, w world, client *http.Client, url string)) {
	t.Helper()
	w := newWorld(t)
	for name, target := range map[string]string{"http": plainBackend(t, h), "h2c": "h2c://" + h2cBackend(t, h)} {
		t.Run(name, func(t *testing.T) {
			url := w.front(t, newProxy(t, target, func(c *HTTPConfig) { c.Log = log }))
			bothVersions(t, func(t *testing.T, h2 bool) {
				f(t, w, w.httpClient(t, h2, false), url)
			})
		})
	}
}

// Each piece must arrive before the next is sent, whether or not the length is
// known beforehand.
func TestResponseIsStreamed(t *testing.T) {
	next := make(chan bool)
	backend := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "30")
		}
		for i := range 10 {
			fmt.Fprintf(w, "%3d", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}
	eachBackend(t, backend, func(t *testing.T, w world, client *http.Client, url string) {
		for _, path := range []string{"/", "/length"} {
			res, err := client.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 3)
			for i := range 10 {
				if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != fmt.Sprintf("%3d", i) {
					t.Fatalf("piece %d: %q, %v", i, buf, err)
				}
				next <- true
			}
			res.Body.Close()
		}
	})
}

// Both directions at the same time, piece by piece: each piece is answered
// before the next is sent, which is what a gRPC stream does.
func TestBothDirectionsAtOnce(t *testing.T) {
	backend := func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex() // HTTP/2 has nothing else
		w.WriteHeader(http.StatusOK)
		_ = rc.Flush()
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(bytes.ToUpper(buf[:n]))
			_ = rc.Flush()
			if err != nil {
				return
			}
		}
	}
	eachBackend(t, backend, func(t *testing.T, w world, client *http.Client, url string) {
		pr, pw := io.Pipe()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", url, pr)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		buf := make([]byte, 4)
		for i := range 20 {
			fmt.Fprintf(pw, "a%03d", i)
			if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != fmt.Sprintf("A%03d", i) {
				t.Fatalf("piece %d: %q, %v", i, buf, err)
			}
		}
		pw.Close()
		if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
			t.Errorf("rest %q, %v", rest, err)
		}
	})
}

func TestLargeBodiesArriveWhole(t *testing.T) {
	sum := func(r io.Reader) string {
		h := sha256.New()
		n, err := io.Copy(h, r)
		return fmt.Sprintf("%d %x %v", n, h.Sum(nil), err)
	}
	data := make([]byte, 3<<20+17)
	_, _ = rand.Read(data)
	backend := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Sum", sum(r.Body))
		_, _ = w.Write(data)
	}
	eachBackend(t, backend, func(t *testing.T, w world, client *http.Client, url string) {
		want := sum(bytes.NewReader(data))
		for _, body := range []io.Reader{bytes.NewReader(data), iotest.DataErrReader(bytes.NewReader(data))} {
			res, err := client.Post(url, "", body)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("X-Sum"); got != want {
				t.Errorf("backend got %s, want %s", got, want)
			}
			if got := sum(res.Body); got != want {
				t.Errorf("client got %s, want %s", got, want)
			}
			res.Body.Close()
		}
	})
}

func TestTrailersBothWays(t *testing.T) {
	backend := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Announced")
		if r.Method == "GET" { // else net/http adds a Content-Length
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, "body")
		w.Header().Set("X-Announced", strings.Join(r.Trailer["X-Sum"], ","))
		w.Header().Set(http.TrailerPrefix+"X-Late", fmt.Sprint(len(r.Trailer)))
	}
	eachBackend(t, backend, func(t *testing.T, w world, client *http.Client, url string) {
		for _, tt := range []struct {
			method string
			length int64
		}{{"POST", -1}, {"GET", -1}, {"POST", 5}} {
			if tt.length > 0 && strings.HasSuffix(t.Name(), "http1") {
				continue // has no trailer without chunks
			}
			req, _ := http.NewRequestWithContext(t.Context(), tt.method, url, struct{ io.Reader }{strings.NewReader("hello")})
			req.ContentLength = tt.length
			req.Trailer = http.Header{"X-Sum": {"abc"}, "Client-Cert": {"forged"}, "X_forwarded_for": {"forged"}}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			want := http.Header{"X-Announced": {"abc"}, "X-Late": {"1"}}
			if diff := cmp.Diff(want, res.Trailer); diff != "" {
				t.Errorf("%+v: %s", tt, diff)
			}
		}
	})
}

func TestCurlSeesChunkedTrailers(t *testing.T) {
	w := newWorld(t)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(w, "body")
		w.Header().Set("X-Sum", "abc")
	})
	url := w.front(t, newProxy(t, backend, nil))
	for _, version := range []string{"--http1.1", "--http2"} {
		if got := strings.ToLower(w.mustCurl(t, version, "-i", url)); !strings.HasSuffix(got, "bodyx-sum: abc\r\n") {
			t.Errorf("%s: no trailer in\n%s", version, got)
		}
	}
}

// A gRPC error without a message is one header with the status in it that ends
// the stream; clients take the same header without the end as a broken answer.
func TestHeaderThatEndsTheStreamStaysOne(t *testing.T) {
	w := newWorld(t)
	backend := h2cBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "5")
	})
	url := w.front(t, newProxy(t, "h2c://"+backend, nil))
	c := w.dialHTTP2(t, url)
	for i := range uint32(200) {
		stream := 2*i + 1
		c.send(stream, true, ":method", "POST", ":scheme", "https", ":path", "/svc/Method", ":authority", "x",
			"content-type", "application/grpc", "te", "trailers")
		h := c.header(stream)
		if h.status != "200" || h.fields["grpc-status"] != "5" || !h.end {
			t.Fatalf("call %d: %+v", i, h)
		}
	}
}

func TestGRPCOverHTTP2(t *testing.T) {
	w := newWorld(t)
	backend := h2cBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Te") != "trailers" {
			t.Errorf("TE %q", r.Header.Get("Te"))
		}
		w.Header().Set("Content-Type", "application/grpc")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	url := w.front(t, newProxy(t, "h2c://"+backend, nil))
	out := w.mustCurl(t, "--http2", "-v", "-H", "TE: trailers", "-H", "Content-Type: application/grpc", "-d", "message", url)
	if !strings.Contains(out, "< grpc-status: 0") || !strings.Contains(out, "message") {
		t.Errorf("got\n%s", out)
	}
}

// An answer to a request whose body nobody reads must reach the client, and the
// connection must not be confused for the next request.
func TestAnswerToUnreadBody(t *testing.T) {
	w := newWorld(t)
	refusing := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	tests := []struct {
		name, target string
		status       int
	}{
		{"refused", refusing, http.StatusRequestEntityTooLarge},
		{"down", "http://" + deadAddress(t), http.StatusBadGateway},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := w.front(t, newProxy(t, tt.target, nil))
			bothVersions(t, func(t *testing.T, h2 bool) {
				client := w.httpClient(t, h2, false)
				for _, size := range []int{1, 100 << 10, 100, 1 << 20, 10} {
					res, err := client.Post(url, "", bytes.NewReader(make([]byte, size)))
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if res.StatusCode != tt.status {
						t.Errorf("%d bytes: status %d, want %d", size, res.StatusCode, tt.status)
					}
				}
			})
		})
	}
}
