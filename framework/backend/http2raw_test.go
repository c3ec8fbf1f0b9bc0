// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawHTTP2 is an HTTP/2 client that sends and sees frames, for what no client
// library sends or shows.
type rawHTTP2 struct {
	t      testing.TB
	framer *http2.Framer
}

func (w world) dialHTTP2(t testing.TB, url string) *rawHTTP2 {
	t.Helper()
	cfg := w.clientTLS(false)
	cfg.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	c := &rawHTTP2{t: t, framer: http2.NewFramer(conn, conn)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a header of names and values by turns.
func (c *rawHTTP2) send(stream uint32, end bool, fields ...string) {
	c.t.Helper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		if err := enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			c.t.Fatal(err)
		}
	}
	first := block.Next(16 << 10)
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: end, EndHeaders: block.Len() == 0})
	for err == nil && block.Len() > 0 {
		part := block.Next(16 << 10)
		err = c.framer.WriteContinuation(stream, block.Len() == 0, part)
	}
	if err != nil {
		c.t.Log(err) // the server may have had enough
	}
}

// frame returns the next frame of stream.
func (c *rawHTTP2) frame(stream uint32) http2.Frame {
	c.t.Helper()
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if f.Header().StreamID == stream {
			return f
		}
	}
}

type rawHeader struct {
	status string // or the name of the error that the stream was reset with
	fields map[string]string
	end    bool
}

// header returns the next header of stream.
func (c *rawHTTP2) header(stream uint32) rawHeader {
	c.t.Helper()
	switch f := c.frame(stream).(type) {
	case *http2.MetaHeadersFrame:
		h := rawHeader{status: f.PseudoValue("status"), fields: map[string]string{}, end: f.StreamEnded()}
		for _, field := range f.RegularFields() {
			h.fields[field.Name] = field.Value
		}
		return h
	case *http2.RSTStreamFrame:
		return rawHeader{status: f.ErrCode.String(), end: true}
	default:
		c.t.Fatalf("unexpected frame %v", f)
		return rawHeader{}
	}
}

// body returns what stream carries up to its end.
func (c *rawHTTP2) body(stream uint32) string {
	c.t.Helper()
	var body strings.Builder
	for {
		f, ok := c.frame(stream).(*http2.DataFrame)
		if !ok {
			c.t.Fatal("a frame without data")
		}
		body.Write(f.Data())
		if f.StreamEnded() {
			return body.String()
		}
	}
}
