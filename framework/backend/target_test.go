// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		in   string
		want Target
		kind Kind
	}{
		{"http://127.0.0.1:8080", Target{SchemeHTTP, "tcp", "127.0.0.1:8080", "127.0.0.1"}, KindHTTP},
		{"http://app", Target{SchemeHTTP, "tcp", "app:80", "app"}, KindHTTP},
		{"HTTP://app/", Target{SchemeHTTP, "tcp", "app:80", "app"}, KindHTTP},
		{"https://app.example", Target{SchemeHTTPS, "tcp", "app.example:443", "app.example"}, KindHTTP},
		{"https://[2001:db8::1]", Target{SchemeHTTPS, "tcp", "[2001:db8::1]:443", "2001:db8::1"}, KindHTTP},
		{"http://[fe80::1%25eth0]:81", Target{SchemeHTTP, "tcp", "[fe80::1%eth0]:81", "fe80::1%eth0"}, KindHTTP},
		{"h2c://[::1]:9000", Target{SchemeH2C, "tcp", "[::1]:9000", "::1"}, KindHTTP},
		{"h2c://app", Target{SchemeH2C, "tcp", "app:80", "app"}, KindHTTP},
		{"http+unix:/run/app.sock", Target{SchemeHTTPUnix, "unix", "/run/app.sock", ""}, KindHTTP},
		{"http+unix:///run/app.sock", Target{SchemeHTTPUnix, "unix", "/run/app.sock", ""}, KindHTTP},
		{"tcp://db:5432", Target{SchemeTCP, "tcp", "db:5432", "db"}, KindBytes},
		{"tls://db:5432", Target{SchemeTLS, "tcp", "db:5432", "db"}, KindBytes},
		{"unix:app.sock", Target{SchemeUnix, "unix", "app.sock", ""}, KindBytes},
		{"unix:@abstract", Target{SchemeUnix, "unix", "@abstract", ""}, KindBytes},
		{"unix:/run/a%20b:c?d#e", Target{SchemeUnix, "unix", "/run/a%20b:c?d#e", ""}, KindBytes},
		{"builtin:hello", Target{SchemeBuiltin, "", "hello", ""}, KindHello},
	}
	for _, tt := range tests {
		t.Run(testName(tt.in), func(t *testing.T) {
			got, err := Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Kind() != tt.kind {
				t.Errorf("kind %d, want %d", got.Kind(), tt.kind)
			}
			if again, err := Parse(got.String()); err != nil || again != got {
				t.Errorf("String %q reads as %+v, %v", got, again, err)
			}
		})
	}
}

func TestParseErrorSaysWhatToWrite(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "http://127.0.0.1:8080"},
		{"8080", "no scheme"},
		{"localhost:8080", "http://localhost:8080"},
		{"127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"ftp://host", "unknown scheme; backends are http://"},
		{"http:/host", "http://HOST:PORT"},
		{"http://", "no host"},
		{"http://:80", "no host"},
		{"tcp://host", "tcp://host:PORT"},
		{"tls://[::1]", "tls://[::1]:PORT"},
		{"http://host:99999", "between 1 and 65535"},
		{"http://host:0", "between 1 and 65535"},
		{"http://host:x", "invalid port"},
		{"http://::1:80", "http://[::1]:8080"},
		{"tcp://::1", "tcp://[::1]:8080"},
		{"tls://2001:db8::1:443", "tls://[::1]:8080"},
		{"http://host/app", `path "/app"`},
		{"http://host?x", "query"},
		{"http://host#x", "fragment"},
		{"http://user:secret@host", "user name"},
		{"http://user:secret@host:x", "invalid port"},
		{"user:secret@host:80", "unknown scheme"},
		{"unix:", "unix:/run/service.sock"},
		{"http+unix:", "http+unix:/run/service.sock"},
		{"unix://run/app.sock", "unix:/run/app.sock"},
		{"unix:/a\x00b", "zero byte"},
		{"unix:/" + strings.Repeat("d", 200), "this one has 201"},
		{"builtin:x", "builtin:hello"},
	}
	for _, tt := range tests {
		t.Run(testName(tt.in), func(t *testing.T) {
			_, err := Parse(tt.in)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "backend ") {
				t.Errorf("got %q, want it to contain %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q tells the password", err)
			}
		})
	}
}

func testName(s string) string {
	if s == "" {
		return "empty"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' {
			return '_'
		}
		return r
	}, s[:min(len(s), 40)])
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"http://[::1]:80", "unix:/run/x", "builtin:hello", "tcp://a:1", "tcp://::1", "http+unix:///x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%q is %+v, but its String %q is %+v, %v", s, got, got.String(), again, err)
		}
	})
}
