// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net/http"
	"strings"
)

// pattern matches names of header fields without regard to case, and takes what
// is neither letter nor digit for "-": CGI, WSGI and many a framework see no
// difference from "_", and some servers turn every such character into one.
type pattern struct {
	text   string // lower case, with "-"
	prefix bool
}

// alwaysReserved returns the names that say what only a TLS terminator knows. A
// client's are removed whatever names are in use, because a backend may look at
// several: Tomcat's SSLValve believes ssl_client_escaped_cert before
// ssl_client_cert.
func alwaysReserved() []pattern {
	return []pattern{
		{text: "client-cert", prefix: true},      // RFC 9440
		{text: "x-client-cert", prefix: true},    // its habitual form before
		{text: "x-client-subject"},               // tlsd's own
		{text: "ssl-", prefix: true},             // Tomcat, Undertow, Keycloak, nginx, mod_ssl
		{text: "x-ssl-", prefix: true},           // HAProxy, nginx by habit
		{text: "cert-chain", prefix: true},       // Keycloak
		{text: "x-forwarded-client-cert"},        // Envoy; removed from trusted proxies too
		{text: "x-forwarded-tls-", prefix: true}, // Traefik; likewise
	}
}

// forwardedPatterns returns the names that tell of a request's origin. Not all of
// them are set here, but backends believe them, some before X-Forwarded-For.
func forwardedPatterns() []pattern {
	return []pattern{
		{text: "forwarded"},
		{text: "x-forwarded-", prefix: true},
		{text: "x-real-ip"},   // nginx by habit, Traefik
		{text: "x-client-ip"}, // Apache, load balancers
		{text: "x-cluster-client-ip"},
		{text: "true-client-ip"}, // content delivery networks
	}
}

// framingPatterns returns the names that say where a request ends. What stands
// under the names themselves, net/http has taken; in another spelling they mean
// nothing here and may mean something behind.
func framingPatterns() []pattern {
	return []pattern{{text: "content-length"}, {text: "transfer-encoding"}}
}

// strip removes reserved fields from h. What tells of the request's origin
// stays where trusted says so, if it is spelled as it should be.
func (c clientFields) strip(h http.Header, trusted bool) {
	origin, framing := forwardedPatterns(), framingPatterns()
	for name := range h {
		plain := strings.EqualFold(name, normal(name))
		switch {
		case matchAny(c.reserved, name),
			matchAny(origin, name) && !(trusted && plain),
			matchAny(framing, name) && !plain:
			delete(h, name)
		}
	}
}

func matchAny(patterns []pattern, name string) bool {
	for _, p := range patterns {
		if p.match(name) {
			return true
		}
	}
	return false
}

func (p pattern) match(name string) bool {
	if len(name) < len(p.text) || len(name) > len(p.text) && !p.prefix {
		return false
	}
	for i := range len(p.text) {
		if fold(name[i]) != p.text[i] {
			return false
		}
	}
	return true
}

// normal returns name in the spelling of a pattern's text.
func normal(name string) string {
	b := []byte(name)
	for i := range b {
		b[i] = fold(b[i])
	}
	return string(b)
}

func fold(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return '-'
}
