// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadySaysWhyNot(t *testing.T) {
	t.Parallel()
	a := New(Config{})
	c, addr := site(t, a.Public(), "")
	url := "http://" + addr
	check := func(path string, wantCode int, wantText string) {
		t.Helper()
		if code, text, _ := answer(t, c, "GET", url+path, ""); code != wantCode || text != wantText+"\n" {
			t.Errorf("%s: got %d %q, want %d %q", path, code, text, wantCode, wantText)
		}
	}
	check("/readyz", 503, "not ready: starting")
	check("/healthz", 200, "ok")
	a.Follow(&told{err: errors.New("key manager is down: \x1b[2J")})
	check("/readyz", 503, `not ready: key manager is down: \x1b[2J`)
	check("/healthz", 200, "ok")
	a.Follow(&told{})
	check("/readyz", 200, "ready")
}

// What changes or shows more is not to be had where anybody may ask.
func TestPublicIsReadOnly(t *testing.T) {
	t.Parallel()
	order := func(context.Context) error { t.Error("obeyed"); return nil }
	a := New(Config{Metrics: http.NotFoundHandler(), Levels: quietLevels(t), Reload: order, Pprof: true})
	c, addr := site(t, a.Public(), "")
	for _, p := range a.private() {
		for _, method := range []string{"GET", "PUT", "POST"} {
			if code, text, _ := answer(t, c, method, "http://"+addr+p.path, ""); code != 404 {
				t.Errorf("%s %s: %d %s", method, p.path, code, text)
			}
		}
	}
	if code, _, _ := answer(t, c, "POST", "http://"+addr+"/healthz", ""); code != 405 {
		t.Errorf("POST /healthz: %d", code)
	}
}

func TestWrongRequestsAreTold(t *testing.T) {
	t.Parallel()
	a := New(Config{Levels: quietLevels(t), Reload: func(context.Context) error { return nil }})
	c, addr := site(t, a.Private(), "")
	for _, tt := range []struct {
		name, method, path string
		code               int
		want               string
	}{
		{"path", "GET", "/health", 404, "there is no /health here; there are:\n/healthz "},
		{"method", "GET", "/reload", 405, "/reload takes POST and not GET"},
		{"other_method", "DELETE", "/log", 405, "/log takes GET, HEAD, PUT and not DELETE"},
		{"index", "GET", "/", 200, "/log "},
		{"too_early_to_roll", "POST", "/tickets/roll", 503, "the key manager is not open yet"},
		{"too_early_to_reload", "POST", "/reload", 503, "the key manager is not open yet"},
		{"pprof_off", "GET", "/debug/pprof/", 404, "there is no /debug/pprof/ here"},
		{"too_early", "GET", "/keystores", 503, "the key manager is not open yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text, h := answer(t, c, tt.method, "http://"+addr+tt.path, "")
			if code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("got %d %q, want %d %q", code, text, tt.code, tt.want)
			}
			if (code == 405) != (h.Get("Allow") != "") {
				t.Errorf("%d with Allow %q", code, h.Get("Allow"))
			}
		})
	}
}

// Browsers on the machine can be had to ask loopback, by pages of anybody.
func TestPrivateIsNotForPages(t *testing.T) {
	t.Parallel()
	a := New(Config{Reload: func(context.Context) error { return nil }})
	a.Follow(&told{keys: openKeys(t)})
	tcp, addr := site(t, a.Private(), "")
	unix, _ := site(t, a.Private(), filepath.Join(t.TempDir(), "admin.sock"))
	for _, tt := range []struct {
		name   string
		header []string
		want   int
	}{
		{"curl", nil, 200},
		{"localhost", []string{"Host", "localhost:9101"}, 200},
		{"ipv6", []string{"Host", "[::1]:9101"}, 200},
		{"ipv6_without_port", []string{"Host", "[::1]"}, 200},
		{"rebound_name", []string{"Host", "evil.example:9101"}, 403},
		{"name_like_localhost", []string{"Host", "localhost.evil.example"}, 403},
		{"other_address", []string{"Host", "10.0.0.1"}, 403},
		{"fetch_of_a_page", []string{"Origin", "https://evil.example"}, 403},
		{"fetch_of_a_file", []string{"Origin", "null"}, 403},
		{"image_in_a_page", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"typed_into_a_browser", []string{"Sec-Fetch-Site", "none"}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, request := range []string{"GET /", "POST /reload"} {
				method, path, _ := strings.Cut(request, " ")
				if code, text, _ := answer(t, tcp, method, "http://"+addr+path, "", tt.header...); code != tt.want {
					t.Errorf("%s: got %d %q, want %d", method, code, text, tt.want)
				}
			}
		})
	}
	if code, text, _ := answer(t, unix, "GET", "http://any.name/", ""); code != 200 {
		t.Errorf("over a unix socket any name will do: %d %s", code, text)
	}
	if code, _, _ := answer(t, unix, "GET", "http://any.name/", "", "Origin", "https://evil.example"); code != 403 {
		t.Errorf("a page is let in over a unix socket: %d", code)
	}
}

// A command line may hold a password.
func TestProfilesShowNoCommandLine(t *testing.T) {
	t.Parallel()
	c, addr := site(t, New(Config{Pprof: true}).Private(), "")
	if code, text, _ := answer(t, c, "GET", "http://"+addr+"/debug/pprof/goroutine?debug=1", ""); code != 200 {
		t.Errorf("goroutine: %d %s", code, text)
	}
	if code, text, _ := answer(t, c, "GET", "http://"+addr+"/debug/pprof/cmdline", ""); code != 404 {
		t.Errorf("cmdline: %d %q", code, text)
	}
}

// TestNamesAreThoseThatCount for the choice.
func TestNamesAreThoseThatCount(t *testing.T) {
	t.Parallel()
	ip := []net.IP{net.IPv4(192, 0, 2, 1)}
	for _, tt := range []struct {
		leaf x509.Certificate
		want []string
	}{
		{x509.Certificate{Subject: pkix.Name{CommonName: "cn.test"}, DNSNames: []string{"a.test"}, IPAddresses: ip}, []string{"a.test", "192.0.2.1"}},
		{x509.Certificate{Subject: pkix.Name{CommonName: "cn.test"}, IPAddresses: ip}, []string{"cn.test", "192.0.2.1"}},
		{x509.Certificate{Subject: pkix.Name{CommonName: "cn.test"}}, []string{"cn.test"}},
		{x509.Certificate{}, []string{}},
	} {
		if diff := cmp.Diff(tt.want, namesOf(&tt.leaf)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestKeystores(t *testing.T) {
	t.Parallel()
	a := New(Config{})
	a.Follow(&told{keys: openKeys(t)})
	c, addr := site(t, a.Private(), "")
	code, text, h := answer(t, c, "GET", "http://"+addr+"/keystores", "")
	var got listing
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 || h.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s, %v", code, text, err)
	}
	if len(got.Entries) != 1 || got.Entries[0].NotBefore == nil || got.Entries[0].NotAfter == nil {
		t.Fatalf("got %s", text)
	}
	got.Entries[0].NotBefore, got.Entries[0].NotAfter = nil, nil
	want := listing{Tier: "pkixcached", Generation: got.Generation, Entries: []entry{
		{Alias: "web", Kind: "key", Names: []string{"a.test", "*.b.test"}, Usable: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" || got.Generation == 0 {
		t.Errorf("generation %d, %s", got.Generation, diff)
	}
	keys := map[string]bool{}
	var raw struct {
		Entries []map[string]any `json:"entries"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	for key := range raw.Entries[0] {
		keys[key] = true
	}
	for _, key := range []string{"builder_index", "alias", "kind", "names", "not_before", "not_after", "usable", "reason"} {
		if !keys[key] {
			t.Errorf("no %q in %s", key, text)
		}
		delete(keys, key)
	}
	if len(keys) > 0 {
		t.Errorf("what else is shown of an entry: %v", keys)
	}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	var fail error
	a := New(Config{Reload: func(context.Context) error { return fail }})
	server := &told{keys: openKeys(t)}
	a.Follow(server)
	c, addr := site(t, a.Private(), "")
	if code, text, _ := answer(t, c, "POST", "http://"+addr+"/reload", ""); code != 200 || !strings.HasPrefix(text, "reloaded, generation ") {
		t.Errorf("got %d %q", code, text)
	}
	fail = errors.New("keystore \"a.p12\": wrong password")
	if code, text, _ := answer(t, c, "POST", "http://"+addr+"/reload", ""); code != 500 || text != "reload failed: keystore \"a.p12\": wrong password; the old state stays in use\n" {
		t.Errorf("got %d %q", code, text)
	}
	if code, text, _ := answer(t, c, "POST", "http://"+addr+"/tickets/roll", ""); code != 200 || !strings.HasPrefix(text, "rolled") || server.rolled.Load() != 1 {
		t.Errorf("got %d %q, rolled %d times", code, text, server.rolled.Load())
	}
	if code, _, _ := answer(t, c, "GET", "http://"+addr+"/tickets/roll", ""); code != 405 || server.rolled.Load() != 1 {
		t.Errorf("a GET got %d and rolled", code)
	}
}

// An order is carried out, even if who gave it doesn't wait.
func TestOrderOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	entered, cut, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	a := New(Config{Reload: func(ctx context.Context) error {
		close(entered)
		<-cut
		done <- ctx.Err()
		return nil
	}})
	a.Follow(&told{keys: openKeys(t)})
	c, addr := site(t, a.Private(), "")
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+addr+"/reload", nil)
		if resp, err := c.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	leave()
	close(cut)
	if err := <-done; err != nil {
		t.Errorf("the order was given up: %v", err)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(t.TempDir(), "a.sock")
	a := New(Config{})
	_, addr := site(t, a.Private(), "")
	site(t, a.Private(), sock)
	port := addr[strings.LastIndex(addr, ":"):]
	for _, address := range []string{addr, port, "0.0.0.0" + port, "localhost" + port, "unix:" + sock} {
		if code, text, err := Ask(t.Context(), address, "/healthz"); err != nil || code != 200 || text != "ok" {
			t.Errorf("%s: %d %q, %v", address, code, text, err)
		}
	}
	if _, _, err := Ask(t.Context(), "unix:"+sock+".not", "/healthz"); err == nil {
		t.Error("nobody answered well")
	}
}
