// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// fact is one line of the built-in page. Value is printable and may come from
// anybody; the HTML template escapes it.
type fact struct {
	Name  string
	Value string
	Note  string
}

type group struct {
	Title string
	Facts []fact
}

// connectionFacts returns all that the built-in page shows of r.
func connectionFacts(r *http.Request) []group {
	groups := []group{{Title: "Your connection", Facts: append(tlsFacts(r), requestFacts(r)...)}}
	if info, ok := InfoFrom(r.Context()); ok {
		groups = append(groups, group{Title: "Served by", Facts: servedFacts(info)})
	}
	for _, g := range groups {
		for i := range g.Facts {
			g.Facts[i].Value = printable(g.Facts[i].Value)
		}
	}
	return groups
}

func tlsFacts(r *http.Request) []fact {
	s := connState(r)
	if s == nil {
		return []fact{{Name: "TLS version", Value: "none", Note: "this request came without TLS"}}
	}
	return []fact{
		{Name: "TLS version", Value: tls.VersionName(s.Version)},
		{Name: "Cipher suite", Value: tls.CipherSuiteName(s.CipherSuite)},
		groupFact(s),
		{Name: "Server name (SNI)", Value: orNone(s.ServerName)},
		{Name: "ALPN", Value: orNone(s.NegotiatedProtocol)},
		resumedFact(s),
		clientFact(r, s),
	}
}

func groupFact(s *tls.ConnectionState) fact {
	f := fact{Name: "Key exchange group", Value: "none"}
	if s.CurveID == 0 {
		return f
	}
	f.Value = s.CurveID.String()
	switch s.CurveID {
	case tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024:
		f.Note = "post-quantum"
	}
	return f
}

func resumedFact(s *tls.ConnectionState) fact {
	if s.DidResume {
		return fact{Name: "Session", Value: "resumed", Note: "no signature was made for it"}
	}
	return fact{Name: "Session", Value: "new", Note: "full handshake"}
}

func clientFact(r *http.Request, s *tls.ConnectionState) fact {
	const name = "Client certificate"
	if chain := clientChain(r); chain != nil {
		return fact{Name: name, Value: orNone(subjectText(chain[0].RawSubject)), Note: "verified"}
	}
	if len(s.PeerCertificates) > 0 {
		return fact{Name: name, Value: orNone(subjectText(s.PeerCertificates[0].RawSubject)), Note: "not verified"}
	}
	return fact{Name: name, Value: "none"}
}

func requestFacts(r *http.Request) []fact {
	return []fact{
		{Name: "HTTP version", Value: r.Proto},
		{Name: "Your address", Value: orNone(r.RemoteAddr)},
	}
}

func servedFacts(info Info) []fact {
	facts := []fact{{Name: "Key manager (tier)", Value: orNone(info.Tier)}}
	if info.Alias == "" {
		return append(facts, fact{Name: "Alias", Value: "none", Note: "a resumed session asks for no key"})
	}
	return append(facts,
		fact{Name: "Keystore", Value: strconv.Itoa(info.Builder), Note: "builder index"},
		fact{Name: "Alias", Value: info.Alias},
		fact{Name: "Generation", Value: strconv.FormatUint(info.Generation, 10)})
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// printable returns s with all that could move a terminal's cursor, or turn the
// direction of text, made visible.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
