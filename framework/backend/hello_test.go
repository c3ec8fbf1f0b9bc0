// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tlsd/tlsd/internal/testca"
)

// helloFront serves the built-in page, whose connections carry info.
func (w world) helloFront(t *testing.T, info Info) string {
	t.Helper()
	s := httptest.NewUnstartedServer(NewHello())
	s.TLS, s.EnableHTTP2 = w.httpTLS(), true
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return WithInfo(ctx, info) }
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

func TestHelloShowsTheConnection(t *testing.T) {
	w := newWorld(t)
	url := w.helloFront(t, Info{Tier: "pkixcached", Builder: 2, Alias: "server", Generation: 7})
	got := w.mustCurl(t, "--tls-max", "1.2", "--http1.1", url+"/any/path")
	for _, want := range []string{
		`TLS version +TLS 1.2\n`, `Cipher suite +TLS_ECDHE_ECDSA_WITH_\S+\n`, `Key exchange group +X25519\n`,
		`Server name \(SNI\) +localhost\n`, `ALPN +http/1.1\n`, `Session +new `, `Client certificate +none\n`,
		`HTTP version +HTTP/1.1\n`, `Your address +\S+:\d+\n`,
		`\(tier\) +pkixcached\n`, `Keystore +2 \(builder index\)\n`, `Alias +server\n`, `Generation +7\n`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := w.mustCurl(t, "--http2", url); !strings.Contains(got, "TLS 1.3") || !strings.Contains(got, "HTTP/2.0") {
		t.Errorf("got\n%s", got)
	}
}

func TestHelloShowsResumption(t *testing.T) {
	w := newWorld(t)
	url := w.helloFront(t, Info{Tier: "pkix"})
	cfg := w.clientTLS(true)
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	var last string
	for range 2 {
		tr := &http.Transport{TLSClientConfig: cfg}
		res, err := (&http.Client{Transport: tr}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		tr.CloseIdleConnections()
		last = string(body)
	}
	for _, want := range []string{"Session              resumed", "CN=alice (verified)", "Alias                none (a resumed session"} {
		if !strings.Contains(last, want) {
			t.Errorf("no %q in\n%s", want, last)
		}
	}
}

func TestHelloFormat(t *testing.T) {
	w := newWorld(t)
	url := w.helloFront(t, Info{})
	tests := []struct {
		name   string
		accept []string
		html   bool
	}{
		{"browser", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, true},
		{"curl", []string{"*/*"}, false},
		{"nothing", nil, false},
		{"text", []string{"text/plain"}, false},
		{"upper-case", []string{"TEXT/HTML"}, true},
		{"refused", []string{"text/html;q=0, */*"}, false},
		{"second-field", []string{"image/png", "text/html; q=0.1"}, true},
		{"json", []string{"application/json"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
				req.Header["Accept"] = tt.accept
				res, err := w.httpClient(t, true, false).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if got := strings.HasPrefix(res.Header.Get("Content-Type"), "text/html"); got != tt.html || res.StatusCode != 200 {
					t.Errorf("%s: %d %q", method, res.StatusCode, res.Header.Get("Content-Type"))
				}
				if (len(body) > 0) != (method == "GET") {
					t.Errorf("%s: %d bytes", method, len(body))
				}
			}
		})
	}
}

func TestHelloRefusesOtherMethods(t *testing.T) {
	w := newWorld(t)
	url := w.helloFront(t, Info{})
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"} {
		got := w.mustCurl(t, "-X", method, "-o", "/dev/null", "-w", "%{http_code} %header{allow}", url)
		if got != "405 GET, HEAD" {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// The page must be whole by itself: nothing is loaded, nothing runs, and what is
// shown is text whatever it says.
func TestHelloPageIsSafe(t *testing.T) {
	w := newWorld(t)
	const evil = `</style><script>alert(1)</script>"'&<b>` + "\x1b[31m\u202e"
	client := w.root.Issue(t, testca.Spec{Name: evil, EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	w.client = client
	url := w.helloFront(t, Info{Tier: evil, Alias: evil})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", url+"/<script>", nil)
	req.Header.Set("Accept", "text/html")
	res, err := w.httpClient(t, false, true).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if strings.ContainsAny(string(body), "\x1b\u202e") {
		t.Error("control characters in the page")
	}
	doc, err := html.Parse(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	var shown int
	for n := range doc.Descendants() {
		switch n.Data {
		case "script", "b", "img", "iframe", "object":
			t.Errorf("element %s", n.Data)
		}
		for _, a := range n.Attr {
			if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "data:") || a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("attribute %s=%q", a.Key, a.Val)
			}
		}
		if n.Type == html.TextNode && strings.Contains(n.Data, "<script>alert(1)") {
			shown++
		}
	}
	if shown != 2 {
		t.Errorf("tier and alias are shown %d times", shown)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store", "Vary": "Accept",
	} {
		if got := res.Header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	checkStyleHash(t, string(body), res.Header.Get("Content-Security-Policy"))
}

// checkStyleHash holds that the policy lets the page's own style through.
func checkStyleHash(t *testing.T, body, policy string) {
	t.Helper()
	_, rest, _ := strings.Cut(body, "<style>")
	style, _, found := strings.Cut(rest, "</style>")
	if !found || style != helloCSS || !strings.Contains(policy, "style-src 'sha256-") {
		t.Errorf("the style is not as its hash says")
	}
}

func TestHelloWithoutTLS(t *testing.T) {
	s := httptest.NewServer(NewHello())
	defer s.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), "came without TLS") {
		t.Errorf("got\n%s", body)
	}
}
