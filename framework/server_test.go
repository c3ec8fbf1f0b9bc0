// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// running is a Server that runs until the test ends.
type running struct {
	*Server
	root *testca.Cert
	fake *fake
	wait func() error // waits for Run and returns its error; idempotent
	end  func() error // ends Run and waits

	mayBeLost bool // so that Run's error is no fault
}

// serve runs a Server of cfg over a fake with a P-256 key.
func serve(t testing.TB, cfg Config) *running {
	t.Helper()
	f, root := fakeOf(t, testca.P256)
	f.trusted = [][]byte{root.DER}
	return serveFake(t, cfg, f, root)
}

func serveFake(t testing.TB, cfg Config, f *fake, root *testca.Cert) *running {
	t.Helper()
	k, _ := f.keys(t)
	r := serveKeys(t, cfg, k)
	r.fake, r.root = f, root
	return r
}

// serveKeys runs a Server of cfg, which closes k.
func serveKeys(t testing.TB, cfg Config, k *Keys) *running {
	t.Helper()
	for i := range cfg.Listeners {
		if cfg.Listeners[i].Listen == "" {
			cfg.Listeners[i].Listen = "127.0.0.1:0"
		}
	}
	cfg = cfg.withListeners()
	if err := cfg.checkListeners(); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(t.Context(), cfg, k)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	r := &running{Server: s}
	r.wait = func() error {
		err := <-result
		result <- err
		return err
	}
	r.end = func() error {
		cancel()
		return r.wait()
	}
	t.Cleanup(func() {
		if err := r.end(); err != nil && !r.mayBeLost {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

func (r *running) addr() string { return r.Addrs()[0].String() }

// dial makes a TLS connection to the first listener.
func (r *running) dial(t testing.TB, change func(*tls.Config)) (*tls.Conn, error) {
	t.Helper()
	cfg := clientOf(r.root, "a.test")
	if change != nil {
		change(cfg)
	}
	return tls.Dial("tcp", r.addr(), cfg)
}

// httpClient returns a client of the first listener.
func (r *running) httpClient(t testing.TB, h2 bool) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: clientOf(r.root, "a.test"), ForceAttemptHTTP2: h2}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// echo is a TCP backend that returns what it gets, and its URL.
func echo(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				// Not spliced: pipes for that are kept, which looks like a leak.
				_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			}()
		}
	}()
	return "tcp://" + ln.Addr().String()
}

func TestHTTPBackend(t *testing.T) {
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("X-Forwarded-Proto"))
	}))
	defer b.Close()
	s := serve(t, Config{Listeners: []Listener{{Backend: b.URL}}})
	for proto, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		resp, err := s.httpClient(t, h2).Get("https://" + s.addr() + "/path")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.Proto != proto || string(body) != "/path https" {
			t.Errorf("%s: %s, %q", proto, resp.Proto, body)
		}
	}
}

func TestBytesBackend(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const want = "a line and an end of file"
	if _, err := io.WriteString(c, want); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || string(got) != want {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestALPN(t *testing.T) {
	web := serve(t, Config{Listeners: []Listener{{}}})
	raw := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}})
	for _, tt := range []struct {
		name   string
		server *running
		offer  []string
		want   string // negotiated
		alert  bool
	}{
		{"http-h2", web, []string{"h2", "http/1.1"}, "h2", false},
		{"http-h1", web, []string{"http/1.1"}, "http/1.1", false},
		{"http-none", web, nil, "", false},
		{"http-unknown", web, []string{"foo"}, "", true},
		{"bytes-unknown", raw, []string{"foo"}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := tt.server.dial(t, func(c *tls.Config) { c.NextProtos = tt.offer })
			if tt.alert {
				if err == nil || err.Error() != "remote error: tls: no application protocol" {
					t.Fatalf("error = %v, want alert 120", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.ConnectionState().NegotiatedProtocol; got != tt.want {
				t.Errorf("negotiated %q, want %q", got, tt.want)
			}
		})
	}
}

// TestResumedConnectionTellsItsOrigin: the credential changes, and a resumed
// session still says what it began with.
func TestResumedConnectionTellsItsOrigin(t *testing.T) {
	seen := make(chan Served, 1)
	f, root := fakeOf(t, testca.P256)
	s := serveFake(t, Config{Listeners: []Listener{{}}}, f, root)
	s.now.Load().listeners[0].route.Load().handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := ServedBy(r.Context())
		seen <- got
	})
	eachVersion(t, s.root, func(t *testing.T, version uint16, client *tls.Config) {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		f.generation.Store(7)
		for i, want := range []Served{
			{Tier: "fake", Alias: "P256", Generation: 7},
			{Tier: "fake", Alias: "P256", Generation: 7}, // by a ticket
			{Tier: "fake", Alias: "P256", Generation: 7}, // by the ticket of a resumed connection
		} {
			c, err := tls.Dial("tcp", s.addr(), client)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(c); err != nil {
				t.Fatal(err)
			}
			c.Close()
			if got := <-seen; got != want || c.ConnectionState().DidResume != (i > 0) {
				t.Errorf("connection %d: resumed %v, served by %+v, want %+v", i, c.ConnectionState().DidResume, got, want)
			}
			f.generation.Add(1)
		}
	})
}

func TestClientAuth(t *testing.T) {
	s := map[ClientAuth]*running{}
	for _, a := range []ClientAuth{ClientAuthNone, ClientAuthOptional, ClientAuthRequire} {
		s[a] = serve(t, Config{Listeners: []Listener{{Backend: echo(t), ClientAuth: a, ClientCA: TrustStore{Path: "clients.p12"}}}})
	}
	for _, tt := range []struct {
		name string
		auth ClientAuth
		by   func(root *testca.Cert) *testca.Cert // who issues; nil: no certificate
		want string                               // alert; empty: served
	}{
		{"none-without", ClientAuthNone, nil, ""},
		{"optional-without", ClientAuthOptional, nil, ""},
		{"optional-good", ClientAuthOptional, func(root *testca.Cert) *testca.Cert { return root }, ""},
		{"optional-stranger", ClientAuthOptional, func(*testca.Cert) *testca.Cert { return testca.NewRoot(t, testca.Spec{}) }, "unknown certificate authority"},
		{"require-without", ClientAuthRequire, nil, "certificate required"},
		{"require-good", ClientAuthRequire, func(root *testca.Cert) *testca.Cert { return root }, ""},
		{"require-stranger", ClientAuthRequire, func(*testca.Cert) *testca.Cert { return testca.NewRoot(t, testca.Spec{}) }, "unknown certificate authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s[tt.auth]
			var acceptable int
			c, err := r.dial(t, func(c *tls.Config) {
				c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
					acceptable = len(info.AcceptableCAs)
					if tt.by == nil {
						return new(tls.Certificate), nil
					}
					mine := tt.by(r.root).Issue(t, testca.Spec{EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
					return &tls.Certificate{Certificate: mine.Chain(), PrivateKey: mine.Key}, nil
				}
			})
			if err == nil {
				defer c.Close()
				_, _ = io.WriteString(c, "x")
				_, err = io.ReadFull(c, make([]byte, 1))
			}
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "remote error: tls: ")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.auth != ClientAuthNone && acceptable != 1 {
				t.Errorf("%d acceptable names, want 1", acceptable)
			}
		})
	}
}

// TestAlertIsNotFollowedByReset: a client that has sent more than the server
// will read is refused by an alert and an end. A reset may make it drop the
// alert unread.
func TestAlertIsNotFollowedByReset(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "clients.p12"}}}})
	for range 20 {
		c, err := s.dial(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(make([]byte, 32<<10))
		_, err = c.Read(make([]byte, 1))
		if err == nil || err.Error() != "remote error: tls: certificate required" {
			t.Errorf("error = %v, want alert 116", err)
		}
		if _, err := c.NetConn().Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("error = %v after the alert, want the end", err)
		}
		c.Close()
	}
}

func TestTakenAddressIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, _ := fakeOf(t)
	k, _ := f.keys(t)
	addr := ln.Addr().String()
	_, err = newServer(t.Context(), Config{Listeners: []Listener{{Listen: addr, Backend: defaultBackend}}}, k)
	var le *ListenError
	if !errors.As(err, &le) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("error = %v, want a ListenError of EADDRINUSE", err)
	}
	for _, want := range []string{addr, "address already in use", "--listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q doesn't say %q", err, want)
		}
	}
}

func TestUnixListenerReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	s := serve(t, Config{Listeners: []Listener{{Listen: "unix:" + path, Backend: echo(t)}}})
	raw, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := tls.Client(raw, clientOf(s.root, "a.test")).Handshake(); err != nil {
		t.Error(err)
	}
	f, _ := fakeOf(t)
	k, _ := f.keys(t)
	if _, err := newServer(t.Context(), Config{Listeners: []Listener{{Listen: "unix:" + path, Backend: defaultBackend}}}, k); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error = %v: a socket in use was taken over", err)
	}
}

func TestSilentClientIsDroppedInTime(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{}}, Limits: Limits{HandshakeTimeout: 100 * time.Millisecond}})
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("error = %v, want the end", err)
	}
}

// TestSlowKeyProcessStillGetsAlert: the deadline of a handshake leaves time to
// say why it ends.
func TestSlowKeyProcessStillGetsAlert(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	f.lookAtContext = func(ctx context.Context) { <-ctx.Done() }
	f.selectErr = context.DeadlineExceeded
	s := serveFake(t, Config{Listeners: []Listener{{}}, Limits: Limits{HandshakeTimeout: time.Second}}, f, root)
	_, err := s.dial(t, nil)
	if err == nil || err.Error() != "remote error: tls: internal error" {
		t.Errorf("error = %v, want alert 80", err)
	}
}

// TestCloseWaitsForNoKeyProcess: a handshake that waits for an answer is given up.
func TestCloseWaitsForNoKeyProcess(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	asked, ended := make(chan struct{}), make(chan error, 1)
	f.selectErr = errors.New("too late")
	f.lookAtContext = func(ctx context.Context) {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
	}
	s := serveFake(t, Config{Listeners: []Listener{{}}}, f, root)
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go tls.Client(c, clientOf(root, "a.test")).Handshake()
	<-asked
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call to the key process ended by %v, want that it was given up", err)
	}
}

func TestProbesAreCounted(t *testing.T) {
	var probes atomic.Int64
	s := serve(t, Config{Listeners: []Listener{{}}, Observer: Observer{Handshake: func(e HandshakeEvent) {
		if e.Result == HandshakeProbe && e.Reason == ReasonProbe {
			probes.Add(1)
		}
	}}})
	for range 3 {
		c, err := net.Dial("tcp", s.addr())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	last, err := s.dial(t, nil) // accepted after them
	if err != nil {
		t.Fatal(err)
	}
	last.Close()
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	if n := probes.Load(); n != 3 {
		t.Errorf("%d probes, want 3", n)
	}
}

func TestPlainHTTPIsTold(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{}}})
	resp, err := http.Get("http://" + s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestDrainLetsRequestsFinish: ending closes the listener, waits for the
// request and cuts nothing.
func TestDrainLetsRequestsFinish(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, Config{Listeners: []Listener{{}}})
	s.now.Load().listeners[0].route.Load().handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	body := make(chan string, 1)
	go func() {
		resp, err := s.httpClient(t, true).Get("https://" + s.addr())
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		body <- string(b)
	}()
	<-began
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	for { // the listener is closed while the request goes on
		c, err := net.Dial("tcp", s.addr())
		if err != nil {
			break
		}
		c.Close()
	}
	close(finish)
	if got := <-body; got != "done" {
		t.Errorf("body %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDrainCutsWhatDoesNotEnd(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}, Drain: 50 * time.Millisecond})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "x")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the server")
	}
}

func TestReloadIsAllOrNothing(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t), ClientAuth: ClientAuthRequire, ClientCA: TrustStore{Path: "clients.p12"}}}})
	before := s.now.Load().listeners[0].route.Load()
	damaged := errors.New("damaged")
	s.fake.trustErr.Store(&damaged)
	if err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "clients.p12") {
		t.Errorf("error = %v", err)
	}
	if n := s.fake.reloads.Load(); n != 0 || s.now.Load().listeners[0].route.Load() != before {
		t.Errorf("%d reloads of the keystores with a damaged trust store", n)
	}
	s.fake.trustErr.Store(nil)
	s.fake.reloadErr = errors.New("wrong password")
	if err := s.Reload(t.Context()); err == nil || s.now.Load().listeners[0].route.Load() != before {
		t.Errorf("error = %v, and the trust stores were taken", err)
	}
	for _, err := range []error{nil, plugin.ErrUnsupported} {
		s.fake.reloadErr = err
		if err := s.Reload(t.Context()); err != nil || s.now.Load().listeners[0].route.Load() == before {
			t.Errorf("error = %v, and nothing was reloaded", err)
		}
		before = s.now.Load().listeners[0].route.Load()
	}
}

func TestReloadKeepsConnectionsAndSessions(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}})
	cache := tls.NewLRUClientSessionCache(1)
	use := func(c *tls.Conn) {
		t.Helper()
		_, _ = io.WriteString(c, "x")
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	first, err := s.dial(t, func(c *tls.Config) { c.ClientSessionCache = cache })
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	use(first)
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	use(first)
	second, err := s.dial(t, func(c *tls.Config) { c.ClientSessionCache = cache })
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if !second.ConnectionState().DidResume {
		t.Error("a reload ended the session")
	}
}

// TestTicketOfOtherListenerIsRefused: each listener has its own ticket keys.
func TestTicketOfOtherListenerIsRefused(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}, {Backend: echo(t)}}})
	cfg := clientOf(s.root, "a.test")
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for i, a := range s.Addrs() {
		c, err := tls.Dial("tcp", a.String(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "x")
		_, _ = io.ReadFull(c, make([]byte, 1)) // takes the ticket
		if c.ConnectionState().DidResume {
			t.Errorf("connection %d resumed", i)
		}
	}
}

func TestLostKeyManagerEndsRun(t *testing.T) {
	f, root := fakeOf(t, testca.P256)
	f.done, f.err = make(chan struct{}), errors.New("crash loop")
	s := serveFake(t, Config{Listeners: []Listener{{}}}, f, root)
	s.mayBeLost = true
	close(f.done)
	var lost *LostError
	if err := s.wait(); !errors.As(err, &lost) || !errors.Is(err, f.err) {
		t.Errorf("error = %v", err)
	}
}

// TestCloseEndsRun without an error: that the key manager is closed is no loss.
func TestCloseEndsRun(t *testing.T) {
	t.Parallel()
	for range 8 { // which of the two Run sees first is for chance
		f, _ := fakeOf(t, testca.P256)
		s := serveKeys(t, Config{Listeners: []Listener{{}}}, newKeys(closing{f, make(chan struct{})}, "fake", &Config{}))
		<-s.Serving()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// closing is a fake that ends as a key process does.
type closing struct {
	*fake
	done chan struct{}
}

func (c closing) Done() <-chan struct{} { return c.done }

func (c closing) Close() error {
	close(c.done)
	return nil
}

func TestListenerDemandsAlias(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Alias: "web", Backend: echo(t)}}})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if h := s.fake.hello.Load(); h.Alias != "web" || h.Listener != "127.0.0.1:0" || h.ConnID == "" || h.Peer == "" {
		t.Errorf("hello = %+v", h)
	}
	cfg := Config{Options: keymanager.Options{Aliases: []string{"a"}}, Listeners: []Listener{{Alias: "web"}, {Alias: "web"}}}
	if got := fmt.Sprint(cfg.withListeners().Options.Aliases); got != "[a web]" {
		t.Errorf("aliases = %s", got)
	}
}

// TestHelloInPieces sends the ClientHello byte by byte.
func TestHelloInPieces(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{Backend: echo(t)}}})
	raw, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := tls.Client(slowWriter{raw}, clientOf(s.root, "a.test")).Handshake(); err != nil {
		t.Error(err)
	}
}

type slowWriter struct{ net.Conn }

func (w slowWriter) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := w.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// A hijacked connection, such as a websocket, is the Server's still.
func TestHijackedConnectionIsDrained(t *testing.T) {
	s := serve(t, Config{Listeners: []Listener{{}}, Drain: 50 * time.Millisecond})
	s.now.Load().listeners[0].route.Load().handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		rw.Flush()
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, rw)
		}()
	})
	c, err := s.dial(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the server")
	}
}
