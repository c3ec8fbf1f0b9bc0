// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net"
	"net/http"
	"net/netip"
)

// guard keeps out what a browser on this machine sends for a page of somebody
// else. Such a page can have it ask loopback, by an address or by a name of its
// own that leads there (DNS rebinding); it can set neither Host nor Origin nor
// Sec-Fetch-Site.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case r.Header.Get("Origin") != "", site != "" && site != "none" && site != "same-origin":
			say(w, http.StatusForbidden, "refused: this is not for pages; ask with curl")
		case !overUnix(r) && !loopbackHost(r.Host):
			say(w, http.StatusForbidden, "refused: Host is "+r.Host+"; ask by an address of loopback, or as localhost")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// overUnix says whether r came over a unix socket, which no browser asks.
func overUnix(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
