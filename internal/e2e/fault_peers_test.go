// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// proxying starts tlsd in front of a backend, with more lines of configuration.
func proxying(t *testing.T, backend string, lines ...string) (*daemon, store) {
	t.Helper()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	return configured(t, s, append([]string{"listeners: [" + backend + "]"}, lines...)...), s
}

// byLine answers each line with itself; it is a backend for bytes.
func byLine(t *testing.T) string {
	t.Helper()
	l := listenOn(t, "tcp", "127.0.0.1:0")
	echoLines(t, l)
	return fmt.Sprintf(`{backend: "tcp://%s"}`, l.Addr())
}

// mustEcho makes a connection and speaks over it.
func mustEcho(t *testing.T, d *daemon, s store) {
	t.Helper()
	c, err := tls.Dial("tcp", d.addr, clientOf(s))
	if err != nil {
		t.Fatalf("%v\n%s", err, d.log)
	}
	defer c.Close()
	mustEchoOver(t, c)
}

func mustEchoOver(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
}

// TestFaultX08_BackendOfBytesDownAndBack: a client is told that there is nothing,
// and is served as soon as there is something.
func TestFaultX08_BackendOfBytesDownAndBack(t *testing.T) {
	t.Parallel()
	gone := freeAddr(t)
	d, s := proxying(t, fmt.Sprintf(`{backend: "tcp://%s"}`, gone))
	ask := func() {
		c, err := tls.Dial("tcp", d.addr, clientOf(s))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want the end", err)
		}
	}
	ask()
	before := d.files()
	for range 100 {
		ask()
	}
	d.awaitFiles(before)
	if n := len(d.awaitLines(1, `"backend failed"`)); n > 20 {
		t.Errorf("%d lines for 101 failures", n)
	}
	echoLines(t, listenOn(t, "tcp", gone))
	mustEcho(t, d, s)
}

// files is how many descriptors tlsd has open.
func (d *daemon) files() int {
	d.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	return len(entries)
}

func (d *daemon) awaitFiles(most int) {
	d.t.Helper()
	n := 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if n = d.files(); n <= most {
			return
		}
	}
	d.t.Errorf("%d descriptors, want %d", n, most)
}

// TestFaultX08_BackendOfRequestsDownSlowAndBack: 502, 504, and well again.
func TestFaultX08_BackendOfRequestsDownSlowAndBack(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d, s := proxying(t, fmt.Sprintf(`{backend: "http://%s", backend_timeout: {first_byte: 500ms}}`, addr))
	client := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{TLSClientConfig: clientOf(s), DisableKeepAlives: true}}
	status := func(want int) {
		t.Helper()
		resp, err := client.Get("https://" + d.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	status(http.StatusBadGateway)
	before := d.files()
	for range 100 {
		status(http.StatusBadGateway)
	}
	d.awaitFiles(before)
	mute := listenOn(t, "tcp", addr) // accepts, by the kernel, and says nothing
	status(http.StatusGatewayTimeout)
	mute.Close()
	serveHTTP(t, listenOn(t, "tcp", addr), nil, http.HandlerFunc(echoRequest))
	status(http.StatusOK)
}

// framed sends what is written first, a ClientHello, in other records.
type framed struct {
	net.Conn
	record int  // bytes in each
	pace   bool // byte by byte
	sent   bool
}

func (f *framed) Write(b []byte) (int, error) {
	if f.sent {
		return f.Conn.Write(b)
	}
	f.sent = true
	var hello, out []byte
	for rest := b; len(rest) >= 5; {
		n := int(binary.BigEndian.Uint16(rest[3:5]))
		hello, rest = append(hello, rest[5:5+n]...), rest[5+n:]
	}
	for len(hello) > 0 {
		n := min(f.record, len(hello))
		out = binary.BigEndian.AppendUint16(append(out, 0x16, 3, 1), uint16(n))
		out, hello = append(out, hello[:n]...), hello[n:]
	}
	if !f.pace {
		_, err := f.Conn.Write(out)
		return len(b), err
	}
	for i := range out {
		if _, err := f.Conn.Write(out[i : i+1]); err != nil {
			return 0, err
		}
		time.Sleep(200 * time.Microsecond)
	}
	return len(b), nil
}

// longHello returns protocols that make a hello of about size bytes.
func longHello(size int) []string {
	protos := []string{"http/1.1"}
	for n := 0; n < size; n += 201 {
		protos = append(protos, fmt.Sprintf("%0200d", n))
	}
	return protos
}

// TestFaultX09_HelloInPieces and of any length that there may be.
func TestFaultX09_HelloInPieces(t *testing.T) {
	t.Parallel()
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}}, testca.Spec{Name: "v.test", DNS: []string{"v.test"}})
	d := start(t, s.args()...)
	for name, tt := range map[string]struct {
		record, size int
		pace         bool
	}{
		"byte-by-byte":           {16 << 10, 0, true},
		"records-of-50":          {50, 0, false},
		"records-of-1":           {1, 0, false},
		"16KB":                   {16 << 10, 16 << 10, false},
		"16KB-in-records-of-50":  {50, 16 << 10, false},
		"records-of-50-by-bytes": {50, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := net.Dial("tcp", d.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			conf := clientOf(s)
			conf.ServerName, conf.NextProtos = "v.test", longHello(tt.size)
			c := tls.Client(&framed{Conn: raw, record: tt.record, pace: tt.pace}, conf)
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			if got := c.ConnectionState().PeerCertificates[0].Subject.CommonName; got != "v.test" {
				t.Errorf("served %s", got)
			}
		})
	}
	t.Run("oversize", func(t *testing.T) {
		c, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// The header of a hello of 16 MB.
		_, _ = c.Write([]byte{0x16, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff})
		wantAlert(t, c)
	})
}

// wantAlert reads the record of a fatal alert and then the end.
func wantAlert(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	got, err := io.ReadAll(c)
	if len(got) != 7 || got[0] != 0x15 || got[5] != 2 {
		t.Errorf("got %x, %v; want an alert", got, err)
	}
}

// TestFault_GarbageAndProbes: garbage, to which no TLS can be answered, ends and is
// said once a second; a connection that says nothing is nothing.
func TestFault_GarbageAndProbes(t *testing.T) {
	t.Parallel()
	d, s := proxying(t, byLine(t))
	for i := range 100 {
		for _, text := range []string{"", "SSH-2.0-OpenSSH_9.2p1\r\n", string(bytes.Repeat([]byte{byte(i)}, 300))} {
			c, err := net.Dial("tcp", d.addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, text); err == nil && text != "" && i == 0 {
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				if _, err := io.Copy(io.Discard, c); err != nil {
					t.Errorf("%q: %v, want the end", text, err)
				}
			}
			c.Close()
		}
	}
	mustEcho(t, d, s)
	n := len(d.awaitLines(1, `"handshake failed"`, `"reason":"protocol"`))
	log := d.log.String()
	if n > 20 {
		t.Errorf("%d lines for 200 failures:\n%s", n, log)
	}
	if strings.Contains(log, "without a hello") {
		t.Errorf("log:\n%s", log)
	}
}

// TestFault_SilentAndSlowClients hold nobody up, and not for longer than they may.
func TestFault_SilentAndSlowClients(t *testing.T) {
	t.Parallel()
	d, s := proxying(t, byLine(t), "limits: {handshake_timeout: 2s}")
	ended := make(chan error, 100)
	for i := range cap(ended) {
		c, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer c.Close()
			if i%2 == 0 {
				go drip(c)
			}
			_ = c.SetReadDeadline(time.Now().Add(15 * time.Second))
			_, err := io.Copy(io.Discard, c)
			ended <- err
		}()
	}
	mustEcho(t, d, s)
	for range cap(ended) {
		if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a client may stay")
		}
	}
	d.awaitLog(`"reason":"timeout"`)
	mustEcho(t, d, s)
}

// drip sends the beginning of a hello that never ends.
func drip(c net.Conn) {
	hello := append([]byte{0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc}, make([]byte, 250)...)
	for i := range hello {
		if _, err := c.Write(hello[i : i+1]); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestFault_Limits as the configuration has them.
func TestFault_Limits(t *testing.T) {
	t.Parallel()
	d, s := proxying(t, byLine(t), "limits: {connections: 2, idle: 6s}")
	var held []*tls.Conn
	for range 2 {
		c := d.untilEchoes(t, s) // the connection that looked whether it listens counts for some time
		defer c.Close()
		held = append(held, c)
	}
	if c, err := tls.Dial("tcp", d.addr, clientOf(s)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the third: %v, want a reset", err)
		if err == nil {
			c.Close()
		}
	}
	d.awaitLog(`"limit":"limits.connections"`)
	for _, c := range held { // idle
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want the end", err)
		}
		c.Close()
	}
	d.untilEchoes(t, s).Close()
}

// untilEchoes waits until a connection is served, and returns it.
func (d *daemon) untilEchoes(t *testing.T, s store) *tls.Conn {
	t.Helper()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var c *tls.Conn
		if c, err = tls.Dial("tcp", d.addr, clientOf(s)); err == nil {
			mustEchoOver(t, c)
			return c
		}
	}
	t.Fatalf("%v\n%s", err, d.log)
	return nil
}

// TestFault_Alerts: a client that sent its hello is told why it is turned away,
// and the log says more.
func TestFault_Alerts(t *testing.T) {
	t.Parallel()
	openssl := testca.Tool(t, "openssl")
	d, _ := proxying(t, `{unknown_sni: reject}`, "limits: {handshake_timeout: 2s}", "log: {debug: [server]}")
	for _, tt := range []struct {
		name, alert, reason string
		args                []string
	}{
		{"none-fits-tls12", "40", "no_credential", []string{"-tls1_2", "-sigalgs", "RSA-PSS+SHA256", "-servername", "w.test"}},
		{"none-fits-tls13", "40", "no_credential", []string{"-tls1_3", "-sigalgs", "RSA-PSS+SHA256", "-servername", "w.test"}},
		{"none-fits-retry", "40", "no_credential", []string{"-tls1_3", "-groups", "X448:X25519", "-sigalgs", "RSA-PSS+SHA256", "-servername", "w.test"}},
		{"unknown-name", "112", "unknown_name", []string{"-servername", "x.test"}},
		{"no-name", "112", "unknown_name", []string{"-noservername"}},
		{"old-version", "70", "protocol", []string{"-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"}},
	} {
		out, _ := command(t, openssl, append([]string{"s_client", "-connect", d.addr}, tt.args...)...)
		if !strings.Contains(out, "alert number "+tt.alert+"\n") && !strings.Contains(out, "alert number "+tt.alert+":") {
			t.Errorf("%s: want alert %s\n%s", tt.name, tt.alert, out)
		}
		d.awaitLog(`"reason":"` + tt.reason + `"`)
	}
	// OpenSSL 3 refuses in the clear what crypto/tls can't decrypt then.
	_, _ = command(t, openssl, "s_client", "-connect", d.addr, "-tls1_3", "-servername", "w.test", "-verify_return_error")
	d.awaitLog("remote error, not encrypted: tls: unknown certificate authority")
	for _, pid := range childrenOf(d.cmd.Process.Pid) {
		syscall.Kill(pid, syscall.SIGSTOP)
		defer syscall.Kill(pid, syscall.SIGCONT)
	}
	// Another hello than those before, so that the front has no answer.
	out, _ := command(t, openssl, "s_client", "-connect", d.addr, "-tls1_3", "-servername", "w.test", "-alpn", "http/1.1")
	if !strings.Contains(out, "alert number 80") {
		t.Errorf("key process frozen: want alert 80\n%s", out)
	}
	d.awaitLog(`"reason":"plugin"`)
}
