// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kind says which of this package's three servers a target is for.
type Kind int

// Kinds of targets.
const (
	KindHTTP  Kind = iota + 1 // NewHTTP
	KindBytes                 // NewBytes
	KindHello                 // NewHello
)

// Schemes of backend URLs.
const (
	SchemeHTTP     = "http"
	SchemeHTTPS    = "https"
	SchemeH2C      = "h2c"
	SchemeHTTPUnix = "http+unix"
	SchemeTCP      = "tcp"
	SchemeTLS      = "tls"
	SchemeUnix     = "unix"
	SchemeBuiltin  = "builtin"
)

// Target is a parsed backend URL.
type Target struct {
	Scheme  string
	Network string // tcp or unix; empty for the built-in page
	Address string // host:port, or a path; "@name" is an abstract socket
	Host    string // tcp only: the host without port and brackets, which a certificate is verified for
}

// Kind says which of this package's three servers t is for.
func (t Target) Kind() Kind {
	switch t.Scheme {
	case SchemeHTTP, SchemeHTTPS, SchemeH2C, SchemeHTTPUnix:
		return KindHTTP
	case SchemeTCP, SchemeTLS, SchemeUnix:
		return KindBytes
	default:
		return KindHello
	}
}

// TLS reports whether the backend is spoken to by TLS.
func (t Target) TLS() bool { return t.Scheme == SchemeHTTPS || t.Scheme == SchemeTLS }

// DialTime returns how long opening a connection to t may take, TLS included,
// where it has connect as its ConnectTimeout.
func (t Target) DialTime(connect time.Duration) time.Duration {
	connect = orDefault(connect, defaultConnectTimeout)
	if t.Kind() == KindHTTP {
		return 2 * connect // for TCP and for TLS
	}
	return connect
}

// String returns t as a URL that Parse reads.
func (t Target) String() string {
	switch t.Network {
	case "tcp":
		return (&url.URL{Scheme: t.Scheme, Host: t.Address}).String()
	default:
		return t.Scheme + ":" + t.Address
	}
}

// known is what every error that finds no scheme tells.
const known = "backends are http://HOST[:PORT], https://HOST[:PORT], h2c://HOST[:PORT], http+unix:PATH, " +
	"tcp://HOST:PORT, tls://HOST:PORT, unix:PATH and builtin:hello; for example http://127.0.0.1:8080"

// Parse reads a backend URL. Ports default to 80 (http, h2c) and 443 (https);
// tcp and tls have none. An error quotes rawURL and says what to write instead.
func Parse(rawURL string) (Target, error) {
	t, err := parse(rawURL)
	if err != nil {
		return Target{}, fmt.Errorf("backend %q: %w", withoutUser(rawURL), err)
	}
	return t, nil
}

// withoutUser returns rawURL without a user name and password that it may hold.
func withoutUser(rawURL string) string {
	end := strings.LastIndexByte(rawURL, '@')
	scheme, _, _ := strings.Cut(rawURL, ":")
	if end < 0 || strings.HasSuffix(strings.ToLower(scheme), SchemeUnix) {
		return rawURL
	}
	begin := 0
	if i := strings.Index(rawURL, "//"); i >= 0 && i < end {
		begin = i + len("//")
	}
	return rawURL[:begin] + "..." + rawURL[end:]
}

func parse(rawURL string) (Target, error) {
	scheme, rest, found := strings.Cut(rawURL, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case rawURL == "":
		return Target{}, errors.New("empty; " + known)
	case !found:
		return Target{}, errors.New("no scheme; " + known)
	}
	switch scheme {
	case SchemeHTTP:
		return parseTCP(scheme, rest, "80")
	case SchemeHTTPS:
		return parseTCP(scheme, rest, "443")
	case SchemeH2C:
		return parseTCP(scheme, rest, "80")
	case SchemeTCP, SchemeTLS:
		return parseTCP(scheme, rest, "")
	case SchemeUnix, SchemeHTTPUnix:
		return parseUnix(scheme, rest)
	case SchemeBuiltin:
		return parseBuiltin(rest)
	}
	if _, err := strconv.ParseUint(rest, 10, 16); err == nil {
		return Target{}, fmt.Errorf("no scheme, write http://%s or tcp://%s; %s", rawURL, rawURL, known)
	}
	return Target{}, errors.New("unknown scheme; " + known)
}

// parseTCP reads what follows the colon of a scheme that has host and port.
func parseTCP(scheme, rest, defaultPort string) (Target, error) {
	if !strings.HasPrefix(rest, "//") {
		return Target{}, fmt.Errorf("no // after the scheme, write %s://HOST:PORT", scheme)
	}
	u, err := url.Parse(scheme + ":" + rest)
	if err != nil {
		return Target{}, explain(err, scheme, rest)
	}
	if err := onlyHostAndPort(u); err != nil {
		return Target{}, err
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = defaultPort
	}
	switch {
	case strings.Contains(host, ":") && !strings.HasPrefix(u.Host, "["): // which net/url takes, but for http
		return Target{}, fmt.Errorf("host %q: %s", u.Host, bracketHint(scheme))
	case host == "":
		return Target{}, fmt.Errorf("no host, write %s://127.0.0.1:PORT", scheme)
	case port == "":
		return Target{}, fmt.Errorf("no port, write %s://%s:PORT", scheme, u.Host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Target{}, fmt.Errorf("port %q is not between 1 and 65535", port)
	}
	return Target{Scheme: scheme, Network: "tcp", Address: net.JoinHostPort(host, port), Host: host}, nil
}

// explain returns the cause of url.Parse's error, and for the commonest one
// what to write.
func explain(err error, scheme, rest string) error {
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		err = ue.Err
	}
	if strings.Count(rest, ":") > 1 && !strings.Contains(rest, "[") {
		return fmt.Errorf("%w; %s", err, bracketHint(scheme))
	}
	return err
}

func bracketHint(scheme string) string {
	return fmt.Sprintf("an IPv6 address stands in brackets, as %s://[::1]:8080", scheme)
}

// onlyHostAndPort refuses what a backend URL could say and tlsd would not do:
// requests are passed on with the path that they came with.
func onlyHostAndPort(u *url.URL) error {
	switch {
	case u.User != nil:
		return errors.New("has a user name, which is not used; leave it out")
	case u.Path != "" && u.Path != "/":
		return fmt.Errorf("has the path %q, but requests keep their own path; leave it out", u.Path)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("has a query or fragment, which is not used; leave it out")
	}
	return nil
}

// parseUnix reads what follows the colon of a scheme that has a path, which is
// taken as it is, without any unescaping. PATH and //PATH are the same where
// PATH is absolute.
func parseUnix(scheme, path string) (Target, error) {
	if after, ok := strings.CutPrefix(path, "//"); ok {
		if !strings.HasPrefix(after, "/") {
			return Target{}, fmt.Errorf("a host before the path of a unix socket; write %s:/%s", scheme, after)
		}
		path = after
	}
	limit := len(syscall.RawSockaddrUnix{}.Path) - 1
	switch {
	case path == "":
		return Target{}, fmt.Errorf("no path, write %s:/run/service.sock", scheme)
	case strings.ContainsRune(path, 0):
		return Target{}, errors.New("a zero byte in the path")
	case len(path) > limit:
		return Target{}, fmt.Errorf("the path of a unix socket has at most %d bytes, this one has %d; use a shorter one", limit, len(path))
	}
	return Target{Scheme: scheme, Network: "unix", Address: path}, nil
}

func parseBuiltin(name string) (Target, error) {
	if name != "hello" {
		return Target{}, fmt.Errorf("no built-in backend %q; there is builtin:hello", name)
	}
	return Target{Scheme: SchemeBuiltin, Address: name}, nil
}
