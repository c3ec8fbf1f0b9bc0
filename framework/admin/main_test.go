// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is a Server that is as ready as it is told to be.
type told struct {
	keys   *framework.Keys
	err    error
	rolled atomic.Int64
}

func (s *told) Ready() error          { return s.err }
func (s *told) Keys() *framework.Keys { return s.keys }
func (s *told) RollTickets()          { s.rolled.Add(1) }

// openKeys opens a keystore with one good entry and one trusted certificate.
func openKeys(t *testing.T) *framework.Keys {
	t.Helper()
	store := filepath.Join(t.TempDir(), "server.p12")
	ca := testca.NewRoot(t, testca.Spec{Name: "root"})
	leaf := ca.Issue(t, testca.Spec{Name: "a", DNS: []string{"a.test", "*.b.test"}})
	testca.WritePKCS12(t, store, "changeit", testca.StoreEntry{Alias: "web", Cert: leaf})
	password := keymanager.Secret("changeit")
	keys, err := framework.Open(t.Context(), framework.Config{
		Tiers: []keymanager.Tier{pkixcached.Tier()}, InProcess: true,
		Keystores: []keymanager.Source{{Paths: []string{store}, Store: keymanager.PasswordRef{Value: &password}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	return keys
}

// quietLevels is a log that nobody reads.
func quietLevels(t *testing.T) *logging.Logger {
	t.Helper()
	l, err := logging.New(logging.Config{Output: nowhere{}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Sync() error                 { return nil }

// site serves h, on a unix socket where path is given, and returns a client of
// it and its address.
func site(t *testing.T, h http.Handler, path string) (*http.Client, string) {
	t.Helper()
	address := "127.0.0.1:0"
	if path != "" {
		address = "unix:" + path
	}
	ln, err := framework.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(Serve(ln, h, nil))
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, ln.Addr().Network(), ln.Addr().String())
	}}
	return &http.Client{Transport: transport}, ln.Addr().String()
}

// answer asks and returns the status, the text and the header.
func answer(t *testing.T, c *http.Client, method, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}
