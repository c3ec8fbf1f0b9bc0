// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

func TestLargeHeaders(t *testing.T) {
	w := newWorld(t)
	cookie := strings.Repeat("c", 60_000)
	answer := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 15 {
			w.Header().Add("Set-Cookie", fmt.Sprintf("c%02d=%s", i, strings.Repeat("s", 4000)))
		}
		fmt.Fprint(w, len(r.Header.Get("Cookie")))
	})
	url := w.front(t, newProxy(t, answer, nil))
	bothVersions(t, func(t *testing.T, h2 bool) {
		client := w.httpClient(t, h2, false)
		get := func(cookie string) (*http.Response, string) {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
			req.Header.Set("Cookie", cookie)
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return res, string(body)
		}
		res, body := get(cookie)
		if body != "60000" {
			t.Errorf("backend got a cookie of %s bytes", body)
		}
		if got := len(strings.Join(res.Header.Values("Set-Cookie"), "")); got != 15*4004 {
			t.Errorf("client got %d bytes of Set-Cookie", got)
		}
	})
}

func TestTooLargeHeaderIs431(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, echo), nil))
	t.Run("http1", func(t *testing.T) {
		conn := w.dialRaw(t, url)
		go func() {
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n")
			for range 32 {
				fmt.Fprintf(conn, "Cookie: %s\r\n", strings.Repeat("x", 64<<10))
			}
			fmt.Fprint(conn, "\r\n")
		}()
		answer, err := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
			t.Errorf("got %.80q, %v", answer, err)
		}
	})
	t.Run("http2", func(t *testing.T) {
		c := w.dialHTTP2(t, url)
		fields := []string{":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x"}
		for range 32 {
			fields = append(fields, "cookie", strings.Repeat("x", 64<<10))
		}
		c.send(1, true, fields...)
		// net/http answers 431 if it is the last frame that has too much, and
		// otherwise closes the connection.
		for {
			f, err := c.framer.ReadFrame()
			if err != nil {
				break
			}
			if h, ok := f.(*http2.MetaHeadersFrame); ok && h.PseudoValue("status") != "431" {
				t.Fatalf("status %s", h.PseudoValue("status"))
			}
		}
	})
	if got := w.mustCurl(t, "-b", "a=b", url); !strings.Contains(got, "Cookie: a=b") {
		t.Errorf("afterwards: %s", got)
	}
}

func TestEarlyHintsPass(t *testing.T) {
	w := newWorld(t)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		fmt.Fprint(w, "done")
	})
	url := w.front(t, newProxy(t, backend, nil))
	for _, version := range []string{"--http1.1", "--http2"} {
		got := strings.ToLower(w.mustCurl(t, version, "-i", url))
		first, rest, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.Contains(first, " 103") || !strings.Contains(first, "link: </style.css>") {
			t.Errorf("%s: no early hints in %q", version, got)
		}
		if !strings.Contains(rest, " 200") || strings.Contains(rest, "link:") || !strings.HasSuffix(rest, "done") {
			t.Errorf("%s: after the hints: %q", version, rest)
		}
	}
}

func TestExpectContinue(t *testing.T) {
	w := newWorld(t)
	read := make(chan int, 1)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		read <- int(n)
	})
	url := w.front(t, newProxy(t, backend, nil))
	conn := w.dialRaw(t, url)
	in := bufio.NewReader(conn)
	fmt.Fprintf(conn, "PUT /take HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	fmt.Fprint(conn, "hello")
	if n := <-read; n != 5 {
		t.Errorf("backend read %d bytes", n)
	}
	conn = w.dialRaw(t, url)
	fmt.Fprintf(conn, "PUT /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 417 Expectation Failed\r\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestHead(t *testing.T) {
	w := newWorld(t)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "12345")
	})
	url := w.front(t, newProxy(t, backend, nil))
	for _, version := range []string{"--http1.1", "--http2"} {
		got := strings.ToLower(w.mustCurl(t, version, "-I", url))
		if !strings.Contains(got, "content-length: 12345\r\n") {
			t.Errorf("%s: %s", version, got)
		}
	}
}

func TestNothingIsAddedToRequestOrResponse(t *testing.T) {
	w := newWorld(t)
	backend := plainBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		w.Header()["Date"] = nil
		w.Header().Set("X-Seen", strings.Join(keys(r.Header), " "))
		_, _ = io.WriteString(w, "<html>")
	})
	url := w.front(t, newProxy(t, backend, nil))
	bothVersions(t, func(t *testing.T, h2 bool) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		req.Header.Set("User-Agent", "")
		res, err := w.httpClient(t, h2, false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Values("Content-Type"); len(got) > 0 {
			t.Errorf("Content-Type %q was added", got)
		}
		want := "Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Port X-Forwarded-Proto"
		if got := res.Header.Get("X-Seen"); got != want {
			t.Errorf("backend saw %q, want %q", got, want)
		}
	})
}
