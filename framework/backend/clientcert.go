// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ClientHeaders names the header fields that tell an HTTP backend of the
// client's certificate. A field with an empty name is not sent; a certificate
// that was not verified is as none.
type ClientHeaders struct {
	Cert    string // the leaf, in Format
	Chain   string // the rest of the verified chain up to and with its root, as RFC 9440's Client-Cert-Chain
	Subject string // the leaf's subject as RFC 2253 text, in ASCII
	Format  string // of Cert; empty: FormatRFC9440
}

// Formats of ClientHeaders.Cert, and who reads them.
const (
	FormatRFC9440       = "rfc9440"        // :base64 of DER:
	FormatDERBase64     = "der-b64"        // base64 of DER
	FormatPEMURLEncoded = "pem-urlencoded" // PEM, percent-encoded as nginx's $ssl_client_escaped_cert: Tomcat's SSLValve (ssl_client_escaped_cert), Keycloak's nginx provider
	FormatPEMSpaces     = "pem-spaces"     // PEM in one line with blanks for line ends: Tomcat's SSLValve (ssl_client_cert), Undertow (SSL_CLIENT_CERT)
)

// DefaultClientHeaders returns the fields of RFC 9440 and X-Client-Subject.
func DefaultClientHeaders() ClientHeaders {
	return ClientHeaders{Cert: "Client-Cert", Chain: "Client-Cert-Chain", Subject: "X-Client-Subject", Format: FormatRFC9440}
}

// Validate returns what is wrong with h, or nil.
func (h ClientHeaders) Validate() error {
	_, err := newClientFields(h)
	return err
}

// clientFields sets a request's client certificate fields and removes all that
// could be mistaken for them.
type clientFields struct {
	names    ClientHeaders
	encode   func(der []byte) string
	reserved []pattern
}

func newClientFields(h ClientHeaders) (clientFields, error) {
	if h == (ClientHeaders{}) {
		h = DefaultClientHeaders()
	}
	encode, err := encoder(h.Format)
	if err != nil {
		return clientFields{}, err
	}
	reserved := alwaysReserved()
	for _, name := range []string{h.Cert, h.Chain, h.Subject} {
		if name == "" {
			continue
		}
		if err := checkName(name); err != nil {
			return clientFields{}, err
		}
		reserved = append(reserved, pattern{text: normal(name)})
	}
	if twice := sameName(h.Cert, h.Chain, h.Subject); twice != "" {
		return clientFields{}, fmt.Errorf("client header %q is named twice; give each its own name", twice)
	}
	return clientFields{names: h, encode: encode, reserved: reserved}, nil
}

func sameName(names ...string) string {
	seen := map[string]bool{"": true}
	for _, name := range names {
		if name != "" && seen[normal(name)] {
			return name
		}
		seen[normal(name)] = true
	}
	return ""
}

// checkName refuses names that can't be a field's, and those that mean
// something else to the proxy or the backend.
func checkName(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("client header %q is not a name of a header field", name)
	}
	switch n := normal(name); n {
	case "host", "connection", "content-length", "transfer-encoding", "trailer", "te", "upgrade", "expect",
		"keep-alive", "proxy-connection", "authorization", "cookie", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host":
		return fmt.Errorf("client header %q has a meaning of its own; choose another name", name)
	}
	return nil
}

// set adds what is known of the client. It does nothing for a client without a
// verified certificate.
func (c clientFields) set(out http.Header, chain []*x509.Certificate) {
	if len(chain) == 0 {
		return
	}
	setField(out, c.names.Cert, c.encode(chain[0].Raw))
	setField(out, c.names.Chain, structuredList(chain[1:]))
	setField(out, c.names.Subject, subjectText(chain[0].RawSubject))
}

func setField(out http.Header, name, value string) {
	if name != "" && value != "" {
		out.Set(name, value)
	}
}

func encoder(format string) (func(der []byte) string, error) {
	switch format {
	case "", FormatRFC9440:
		return structuredBytes, nil
	case FormatDERBase64:
		return base64.StdEncoding.EncodeToString, nil
	case FormatPEMURLEncoded:
		return pemEscaped, nil
	case FormatPEMSpaces:
		return pemSpaces, nil
	}
	return nil, fmt.Errorf("client header format %q is unknown; there are %s, %s, %s and %s",
		format, FormatRFC9440, FormatDERBase64, FormatPEMURLEncoded, FormatPEMSpaces)
}

// structuredBytes returns a byte sequence of RFC 8941, section 3.3.5.
func structuredBytes(der []byte) string {
	return ":" + base64.StdEncoding.EncodeToString(der) + ":"
}

func structuredList(chain []*x509.Certificate) string {
	items := make([]string, len(chain))
	for i, c := range chain {
		items[i] = structuredBytes(c.Raw)
	}
	return strings.Join(items, ", ")
}

func pemText(der []byte) string {
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func pemSpaces(der []byte) string { return strings.ReplaceAll(pemText(der), "\n", " ") }

// pemEscaped writes a blank as %20, since not every reader takes + for one.
func pemEscaped(der []byte) string {
	return strings.ReplaceAll(url.QueryEscape(pemText(der)), "+", "%20")
}
