// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rewritten returns the header that a backend gets for a request from remote.
func rewritten(t *testing.T, trusted, remote, host string, header http.Header) http.Header {
	t.Helper()
	client, err := newClientFields(ClientHeaders{})
	if err != nil {
		t.Fatal(err)
	}
	rw := rewriter{target: mustParse(t, "http://127.0.0.1:1"), client: client}
	if trusted != "" {
		rw.trusted = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/30"), netip.MustParsePrefix(trusted)}
	}
	in := httptest.NewRequest("GET", "https://x/", nil)
	in.RemoteAddr, in.Host, in.Header, in.TLS = remote, host, header, &tls.ConnectionState{}
	out := in.Clone(t.Context())
	rw.rewrite(&httputil.ProxyRequest{In: in, Out: out})
	return out.Header
}

func TestForwardedFields(t *testing.T) {
	forged := http.Header{
		"X-Forwarded-For": {"1.1.1.1", "2.2.2.2"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"forged"},
		"X-Forwarded-Port": {"1"}, "X_forwarded_for": {"3.3.3.3"}, "Forwarded": {"for=4.4.4.4"}, "Keep": {"me"},
		"X-Forwarded-Client-Cert": {"forged"}, "X-Real-Ip": {"5.5.5.5"}, "True-Client-Ip": {"5.5.5.5"},
	}
	tests := []struct {
		name, trusted, remote, host string
		in, want                    http.Header
	}{
		{"anew", "", "192.0.2.7:4711", "www.example:8443", forged, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"www.example:8443"}, "X-Forwarded-Port": {"8443"},
			"Forwarded": {`for=192.0.2.7;host="www.example:8443";proto=https`}, "Keep": {"me"}}},
		{"not-trusted", "10.0.0.0/8", "192.0.2.7:4711", "a", forged, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for=192.0.2.7;host="a";proto=https`}, "Keep": {"me"}}},
		{"trusted", "192.0.2.0/24", "192.0.2.7:4711", "a", forged, http.Header{
			"X-Forwarded-For": {"1.1.1.1, 2.2.2.2, 192.0.2.7"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"forged"},
			"X-Forwarded-Port": {"1"}, "Forwarded": {`for=4.4.4.4, for=192.0.2.7;host="a";proto=https`}, "Keep": {"me"},
			"X-Real-Ip": {"5.5.5.5"}, "True-Client-Ip": {"5.5.5.5"}}},
		{"trusted-mapped", "192.0.2.0/24", "[::ffff:192.0.2.7]:1", "a", http.Header{"X-Forwarded-For": {"1.1.1.1"}}, http.Header{
			"X-Forwarded-For": {"1.1.1.1, 192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Port": {"443"}}},
		{"trusted-says-nothing", "192.0.2.0/24", "192.0.2.7:1", "a", http.Header{}, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for=192.0.2.7;host="a";proto=https`}}},
		{"trusted-new-style-only", "2001:db8::/32", "[2001:db8::7]:1", "a", http.Header{"Forwarded": {"for=4.4.4.4"}}, http.Header{
			"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for=4.4.4.4, for="[2001:db8::7]";host="a";proto=https`}}},
		{"ipv6-zone", "", "[fe80::1%eth0]:1", "a", http.Header{}, http.Header{
			"X-Forwarded-For": {"fe80::1"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for="[fe80::1]";host="a";proto=https`}}},
		{"no-host", "", "192.0.2.7:1", "", http.Header{}, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "Forwarded": {"for=192.0.2.7;proto=https"}}},
		{"odd-port", "", "192.0.2.7:1", "a:65536", http.Header{}, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a:65536"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for=192.0.2.7;host="a:65536";proto=https`}}},
		{"ipv6-port", "", "192.0.2.7:1", "[::1]:8443", http.Header{}, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"[::1]:8443"}, "X-Forwarded-Port": {"8443"},
			"Forwarded": {`for=192.0.2.7;host="[::1]:8443";proto=https`}}},
		{"ipv6-without-port", "", "192.0.2.7:1", "[::1]", http.Header{}, http.Header{
			"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"[::1]"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for=192.0.2.7;host="[::1]";proto=https`}}},
		{"trusted-host-without-port", "192.0.2.0/24", "192.0.2.7:1", "tlsd:8443", http.Header{"X-Forwarded-For": {"1.1.1.1"}, "X-Forwarded-Host": {"www.example"}}, http.Header{
			"X-Forwarded-For": {"1.1.1.1, 192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"www.example"}}},
		{"unix", "0.0.0.0/0", "@", "a", forged, http.Header{
			"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Port": {"443"},
			"Forwarded": {`for=unknown;host="a";proto=https`}, "Keep": {"me"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rewritten(t, tt.trusted, tt.remote, tt.host, maps.Clone(tt.in))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a client sends, in whatever spelling and version, as header or as
// trailer, and even if it declares the proxy's own fields hop-by-hop.
func TestForgedFieldsNeverArrive(t *testing.T) {
	w := newWorld(t)
	url := w.front(t, newProxy(t, plainBackend(t, echo), func(c *HTTPConfig) {
		c.ClientHeaders = ClientHeaders{Cert: "ssl_client_cert", Subject: "My-Subject", Format: FormatPEMSpaces}
	}))
	names := []string{
		"Client-Cert", "client-cert-chain", "X-Client-Subject", "x_client_subject", "CLIENT_CERT",
		"ssl_client_cert", "SSL-Client-Cert", "ssl_client_escaped_cert", "Ssl-Client-Verify", "ssl_cipher", "SSL_SESSION_ID",
		"ssl_cipher_usekeysize", "X-SSL-Client-CN", "x_ssl_client_dn", "X-Client-Cert", "CERT_CHAIN_0",
		"X-Forwarded-Client-Cert", "X-Forwarded-Tls-Client-Cert", "X-Forwarded-User", "x_forwarded_proto",
		"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Port", "x_forwarded_port", "Forwarded", "my_subject", "MY-SUBJECT",
		"X-Real-IP", "x_real_ip", "True-Client-IP", "X-Client-IP", "x-cluster-client-ip",
		"Client.Cert", "ssl~client|cert", "X.Forwarded.For", "My+Subject",
		"Transfer_Encoding", "content_length", "Content.Length",
	}
	for _, version := range []string{"--http1.1", "--http2"} {
		args := []string{version, "-H", "Kept: kept"}
		for _, n := range names {
			args = append(args, "-H", n+": forged")
		}
		if version == "--http1.1" {
			args = append(args, "-H", "Connection: close, X-Forwarded-For, X-Forwarded-Proto, Forwarded")
		}
		got := w.mustCurl(t, append(args, url)...)
		if strings.Contains(got, "forged") || !strings.Contains(got, "Kept: kept") {
			t.Errorf("%s:\n%s", version, got)
		}
		for _, want := range []string{"X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: https\r\n", "Forwarded: for=127.0.0.1;"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", version, want, got)
			}
		}
	}
}
