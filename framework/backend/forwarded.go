// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Fields that tell where a request came from, in canonical spelling.
const (
	headerFor       = "X-Forwarded-For"
	headerProto     = "X-Forwarded-Proto"
	headerHost      = "X-Forwarded-Host"
	headerPort      = "X-Forwarded-Port"
	headerForwarded = "Forwarded" // RFC 7239
)

// forwarded is what the backend is told of a request's origin.
type forwarded struct {
	peer    netip.Addr // invalid: the client has no IP address
	host    string
	proto   string
	trusted bool
	prior   http.Header // what a trusted proxy said; nil: nothing
}

func (rw rewriter) forwardedFrom(in *http.Request) forwarded {
	f := forwarded{host: in.Host, proto: "http"}
	if connState(in) != nil {
		f.proto = "https"
	}
	if ap, err := netip.ParseAddrPort(in.RemoteAddr); err == nil {
		f.peer = ap.Addr().Unmap().WithZone("")
	}
	for _, p := range rw.trusted {
		f.trusted = f.trusted || p.Contains(f.peer)
	}
	if f.trusted {
		f.prior = in.Header
	}
	return f
}

// set sets the fields in out. Where a trusted proxy sent only one of the two
// kinds, the other isn't added: it would name the proxy as the client. Nor is a
// port added to the host or protocol that it named.
func (f forwarded) set(out http.Header) {
	oldStyle := f.said(headerFor) || f.said(headerProto) || f.said(headerHost)
	if f.peer.IsValid() && (oldStyle || !f.said(headerForwarded)) {
		out.Set(headerFor, f.appended(headerFor, f.peer.String()))
	}
	if f.said(headerForwarded) || !oldStyle {
		out.Set(headerForwarded, f.appended(headerForwarded, f.element()))
	}
	f.keep(out, headerProto, f.proto)
	f.keep(out, headerHost, f.host)
	if f.said(headerPort) || !f.said(headerHost) && !f.said(headerProto) {
		f.keep(out, headerPort, f.port())
	}
}

// port is the one in the client's URL, as far as Host tells. The listener's may
// be another where a port is mapped, and redirects that a backend makes of it
// would lead nowhere.
func (f forwarded) port() string {
	if f.host == "" {
		return ""
	}
	if _, port, err := net.SplitHostPort(f.host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
			return strconv.FormatUint(n, 10)
		}
	}
	if f.proto == "https" {
		return "443"
	}
	return "80"
}

func (f forwarded) said(name string) bool { return len(f.prior[name]) > 0 }

// appended returns what a trusted proxy said, and then value.
func (f forwarded) appended(name, value string) string {
	return strings.Join(append(f.prior[name][:len(f.prior[name]):len(f.prior[name])], value), ", ")
}

// keep sets a field to what a trusted proxy said, or else to value.
func (f forwarded) keep(out http.Header, name, value string) {
	if f.said(name) {
		value = strings.Join(f.prior[name], ", ")
	}
	if value != "" { // HTTP/1.0 has no host
		out.Set(name, value)
	}
}

// element returns this hop as RFC 7239, section 4 writes it.
func (f forwarded) element() string {
	node := "unknown"
	switch {
	case f.peer.Is4():
		node = f.peer.String()
	case f.peer.Is6():
		node = `"[` + f.peer.String() + `]"`
	}
	host := ""
	if f.host != "" {
		host = `;host="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(f.host) + `"`
	}
	return "for=" + node + host + ";proto=" + f.proto
}
