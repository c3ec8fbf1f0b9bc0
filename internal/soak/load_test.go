// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// load is clients of several kinds and what became of them.
type load struct {
	d *daemon
	k *keystore

	mu      sync.Mutex
	kinds   []*kind
	gaps    []gap // times without a key process
	wrong   []error
	strange []error // failures that nothing explains
}

// kind counts what became of the clients of one kind.
type kind struct {
	name                     string
	served, resumed, refused int
}

// gap is a time in which handshakes may fail; to is zero while it lasts.
type gap struct{ from, to time.Time }

func newLoad(d *daemon, k *keystore) *load { return &load{d: d, k: k} }

// clients returns what each client does again and again.
func (l *load) clients() []func() {
	return []func(){
		l.client("http, TLS 1.3", tls.VersionTLS13, nil, l.get),
		l.client("http, TLS 1.2", tls.VersionTLS12, nil, l.get),
		l.client("http, TLS 1.3, resumed", tls.VersionTLS13, tls.NewLRUClientSessionCache(4), l.get),
		l.client("http, TLS 1.2, resumed", tls.VersionTLS12, tls.NewLRUClientSessionCache(4), l.get),
		l.client("bytes, TLS 1.3", tls.VersionTLS13, nil, l.echo),
		l.client("bytes, TLS 1.2", tls.VersionTLS12, nil, l.echo),
		l.bad("garbage", func(c net.Conn) { c.Write(bytes.Repeat([]byte("garbage "), 64)) }),
		l.bad("not a word", func(net.Conn) {}),
		l.bad("half a hello", func(c net.Conn) { c.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}) }),
		l.bad("too long a record", func(c net.Conn) { c.Write(append([]byte{22, 3, 1, 255, 255}, make([]byte, 4096)...)) }),
	}
}

// client returns a client that connects, checks what it is served with, and then
// uses the connection.
func (l *load) client(name string, version uint16, sessions tls.ClientSessionCache, use func(*tls.Conn) error) func() {
	k := &kind{name: name}
	l.kinds = append(l.kinds, k)
	conf := &tls.Config{
		ServerName: "w.test", RootCAs: l.k.root.Pool(), MinVersion: version, MaxVersion: version, ClientSessionCache: sessions,
	}
	addr := l.d.web
	if strings.HasPrefix(name, "bytes") {
		addr = l.d.echo
	}
	return func() {
		began := time.Now()
		c, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", addr, conf)
		if err != nil {
			l.failed(k, began, err)
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		state := c.ConnectionState()
		if !state.DidResume { // a session keeps what it began with
			l.note(&l.wrong, k, l.k.check(state.PeerCertificates[0], began))
		}
		l.note(&l.wrong, k, use(c))
		l.mu.Lock()
		defer l.mu.Unlock()
		k.served++
		if state.DidResume {
			k.resumed++
		}
	}
}

func (l *load) note(list *[]error, k *kind, err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, fmt.Errorf("%s %s: %w", time.Now().Format("15:04:05.000"), k.name, err))
}

// failed judges a handshake that failed: in a gap, with the alert for it, that is
// as it should be.
func (l *load) failed(k *kind, began time.Time, err error) {
	right := strings.Contains(err.Error(), "remote error: tls: internal error") || // 80
		strings.Contains(err.Error(), "remote error: tls: handshake failure") && strings.Contains(k.name, "1.2") // 40: crypto/tls had begun to sign
	l.mu.Lock()
	defer l.mu.Unlock()
	if right && l.inGap(began, time.Now()) {
		k.refused++
		return
	}
	l.strange = append(l.strange, fmt.Errorf("%s %s: %w", began.Format("15:04:05.000"), k.name, err))
}

// inGap is called with mu held.
func (l *load) inGap(from, to time.Time) bool {
	for _, g := range l.gaps {
		if g.from.Before(to) && (g.to.IsZero() || g.to.After(from)) {
			return true
		}
	}
	return false
}

// openGap begins a gap and returns what ends it.
func (l *load) openGap() (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.gaps)
	l.gaps = append(l.gaps, gap{from: time.Now()})
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gaps[i].to = time.Now()
	}
}

func (l *load) get(c *tls.Conn) error {
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: w.test\r\nConnection: close\r\n\r\n")
	all, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if status := fmt.Sprintf("HTTP/1.1 %d OK\r\n", http.StatusOK); !bytes.HasPrefix(all, []byte(status)) || !bytes.HasSuffix(all, []byte(answer)) {
		return fmt.Errorf("answered %q", all)
	}
	return nil
}

func (l *load) echo(c *tls.Conn) error {
	sent := make([]byte, 20<<10)
	rand.Read(sent)
	go c.Write(sent)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !bytes.Equal(got, sent) {
		return fmt.Errorf("other bytes came back")
	}
	return nil
}

// bad returns a client that is none.
func (l *load) bad(name string, say func(net.Conn)) func() {
	k := &kind{name: "bad: " + name}
	l.kinds = append(l.kinds, k)
	return func() {
		c, err := net.DialTimeout("tcp", l.d.web, 20*time.Second)
		if err != nil {
			l.note(&l.strange, k, err)
			return
		}
		defer c.Close()
		say(c)
		l.mu.Lock()
		defer l.mu.Unlock()
		k.refused++
	}
}

func (l *load) table() string {
	s := row("clients", "served", "resumed", "refused")
	for _, k := range l.kinds {
		s += row(k.name, k.served, k.resumed, k.refused)
	}
	return s + row("wrong answers", len(l.wrong)) + row("unexplained failures", len(l.strange)) + "\n"
}

func (l *load) judge(t *testing.T) {
	t.Helper()
	for _, list := range [][]error{l.wrong, l.strange} {
		for _, err := range list[:min(len(list), 10)] {
			t.Error(err)
		}
	}
	for _, k := range l.kinds {
		bad := strings.HasPrefix(k.name, "bad")
		if !bad && k.served == 0 || strings.HasSuffix(k.name, "resumed") && k.resumed == 0 {
			t.Errorf("%s: served %d, of them resumed %d", k.name, k.served, k.resumed)
		}
	}
}
