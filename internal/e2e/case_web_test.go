// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestCaseX05_ContentOfLargeHeaders, both ways, over both versions of HTTP.
func TestCaseX05_ContentOfLargeHeaders(t *testing.T) {
	t.Parallel()
	text := func(seed, size int) string {
		var b strings.Builder
		for n := seed; b.Len() < size; n++ {
			fmt.Fprintf(&b, "%x.", n)
		}
		return b.String()[:size]
	}
	d, s := requested(t, "http", func(w http.ResponseWriter, r *http.Request) {
		for i := range 15 {
			w.Header().Add("Set-Cookie", text(i, 4000))
		}
		io.WriteString(w, r.Header.Get("Cookie"))
	})
	for _, protos := range []func(p *http.Protocols){func(p *http.Protocols) { p.SetHTTP1(true) }, func(p *http.Protocols) { p.SetHTTP2(true) }} {
		only := new(http.Protocols)
		protos(only)
		transport := &http.Transport{TLSClientConfig: clientOf(s), Protocols: only, MaxResponseHeaderBytes: 1 << 20}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+d.addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := "a=" + text(99, 60_000)
		req.Header.Set("Cookie", sent)
		resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(req)
		if err != nil {
			t.Fatalf("%v: %v", only, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != sent {
			t.Errorf("%v: the backend got another cookie of %d bytes, %v", only, len(body), err)
		}
		got := resp.Header.Values("Set-Cookie")
		for i, cookie := range got {
			if cookie != text(i, 4000) {
				t.Errorf("%v: cookie %d is another", only, i)
			}
		}
		if len(got) != 15 {
			t.Errorf("%v: %d cookies", only, len(got))
		}
	}
}

// TestCaseX02_NoExtendedConnect is announced to a client of HTTP/2, and one that
// tries it all the same, or asks for an upgrade, has its answer.
func TestCaseX02_NoExtendedConnect(t *testing.T) {
	t.Parallel()
	d, s := requested(t, "http", echoRequest)
	for name, fields := range map[string][]string{
		"extended-connect": {":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/", ":authority", "w.test"},
		"upgrade":          {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "w.test", "upgrade", "websocket", "sec-websocket-version", "13"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := clientOf(s)
			conf.NextProtos = []string{"h2", "http/1.1"}
			c, err := tls.Dial("tcp", d.addr, conf)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			if got := c.ConnectionState().NegotiatedProtocol; got != "h2" {
				t.Fatalf("%q is spoken", got)
			}
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for i := 0; i < len(fields); i += 2 {
				encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
			}
			io.WriteString(c, http2.ClientPreface)
			framer := http2.NewFramer(c, c)
			framer.WriteSettings()
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: name == "upgrade"})
			for answered := false; !answered; {
				frame, err := framer.ReadFrame()
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				switch f := frame.(type) {
				case *http2.SettingsFrame:
					if v, ok := f.Value(http2.SettingEnableConnectProtocol); ok && v != 0 {
						t.Error("extended CONNECT is announced")
					}
				case *http2.HeadersFrame, *http2.RSTStreamFrame, *http2.GoAwayFrame:
					answered = true
				}
			}
		})
	}
}
