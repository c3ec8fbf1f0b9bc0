// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
)

// rewriter makes the backend's request out of the client's.
type rewriter struct {
	target  Target
	client  clientFields
	trusted []netip.Prefix
}

// rewrite is the proxy's Rewrite: hop-by-hop fields are already gone, so that
// nothing which is set here can be named in the client's Connection field.
func (rw rewriter) rewrite(p *httputil.ProxyRequest) {
	rw.setURL(p)
	fwd := rw.forwardedFrom(p.In)
	rw.client.strip(p.Out.Header, fwd.trusted)
	rw.client.strip(p.Out.Trailer, false)
	fwd.set(p.Out.Header)
	rw.client.set(p.Out.Header, clientChain(p.In))
	prepareBody(p)
}

// setURL directs the request to the target. Host, path and query stay the
// client's; the proxy's own cleaning of the query is undone, since nothing here
// depends on it, except for bytes that would end the request line.
func (rw rewriter) setURL(p *httputil.ProxyRequest) {
	u := p.Out.URL
	u.Scheme, u.Host = "http", rw.target.Address
	switch {
	case rw.target.TLS():
		u.Scheme = "https"
	case rw.target.Network == "unix":
		u.Host = "localhost"
	}
	u.RawQuery = escape(p.In.URL.RawQuery, "")
	if u.RawPath != "" {
		u.RawPath = escape(u.RawPath, "\"<>\\^`{|}#?")
	}
}

// escape percent-encodes the bytes of s that no request target may have, and
// those in more, and leaves the rest alone. So a path keeps its own escapes
// where net/url would otherwise encode it all anew, and turn %2F into a slash.
func escape(s, more string) string {
	bad := func(c byte) bool { return c <= ' ' || c > '~' || strings.IndexByte(more, c) >= 0 }
	clean := true
	for i := range len(s) {
		clean = clean && !bad(s[i])
	}
	if clean {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; bad(c) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// withoutUpgrade returns r, without its Upgrade field where the backend is not
// to see it. RFC 9110, 7.8 lets a server ignore the field.
func (h *HTTP) withoutUpgrade(r *http.Request) *http.Request {
	values := r.Header["Upgrade"]
	if len(values) == 0 || r.ProtoMajor == 1 && h.target.Scheme != SchemeH2C && mayUpgrade(values) {
		return r
	}
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Del("Upgrade")
	return &out
}

// mayUpgrade reports whether a client may change to the protocol named in an
// Upgrade field. Those that carry requests would carry them past the removal of
// forged fields. There must be one value in one field, since more would be read
// in more than one way.
func mayUpgrade(values []string) bool {
	if len(values) != 1 {
		return false
	}
	for i := range len(values[0]) {
		if c := values[0][i]; c < ' ' || c > '~' || c == ',' {
			return false
		}
	}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(values[0])), "/")
	return name != "" && name != "h2c" && name != "http" && name != "tls"
}
