// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"strings"
	"testing"
)

func TestParseHostName(t *testing.T) {
	for _, tt := range []struct{ name, in, want, err string }{
		{name: "plain", in: "a.example", want: "a.example"},
		{name: "case", in: "WWW.Example", want: "www.example"},
		{name: "dot-at-end", in: "a.example.", want: "a.example"},
		{name: "one-label", in: "localhost", want: "localhost"},
		{name: "underscore", in: "my_app.b.example", want: "my_app.b.example"},
		{name: "wildcard", in: "*.B.example", want: "*.b.example"},
		{name: "u-label", in: "bücher.test", want: "xn--bcher-kva.test"},
		{name: "u-label-in-capitals", in: "BÜCHER.Test", want: "xn--bcher-kva.test"},
		{name: "u-label-decomposed", in: "bu\u0308cher.test", want: "xn--bcher-kva.test"},
		{name: "u-label-with-ideographic-dots", in: "bücher。test。", want: "xn--bcher-kva.test"},
		{name: "u-label-beside-underscore", in: "my_app.bücher.test", want: "my_app.xn--bcher-kva.test"},
		{name: "u-label-below-wildcard", in: "*.bücher.test", want: "*.xn--bcher-kva.test"},
		{name: "a-label", in: "XN--bcher-kva.test", want: "xn--bcher-kva.test"},
		{name: "address", in: "192.0.2.1", want: "192.0.2.1"},
		{name: "address6", in: "2001:DB8:0::1", want: "2001:db8::1"},
		{name: "address6-in-brackets", in: "[2001:db8::1]", want: "2001:db8::1"},
		{name: "address4-in-6", in: "::ffff:192.0.2.1", want: "192.0.2.1"},

		{name: "empty", in: "", err: "empty"},
		{name: "only-a-dot", in: ".", err: "empty"},
		{name: "empty-label", in: "a..example", err: "empty"},
		{name: "wildcard-alone", in: "*", err: "whole left-most label, as in *.example.com"},
		{name: "wildcard-alone-dotted", in: "*.", err: "whole left-most label"},
		{name: "partial-wildcard", in: "w*.example", err: "whole left-most label"},
		{name: "wildcard-within", in: "a.*.example", err: "whole left-most label"},
		{name: "two-wildcards", in: "*.*.example", err: "whole left-most label"},
		{name: "wildcard-address", in: "*.0.2.1", err: "ends in a number"},
		{name: "number-at-end", in: "a.example.7", err: "ends in a number"},
		{name: "port", in: "a.example:443", err: "no scheme, port or path"},
		{name: "url", in: "https://a.example/", err: "no scheme, port or path"},
		{name: "space", in: "a b.example", err: "no scheme, port or path"},
		{name: "zone", in: "fe80::1%eth0", err: `leave out "%eth0"`},
		{name: "not-of-idna", in: "a\u2024.☃\u200d.test", err: "IDNA"},
		{name: "long-label", in: strings.Repeat("a", 64) + ".example", err: "longer than 63"},
		{name: "long-name", in: strings.Repeat("a.", 127) + "example", err: "longer than 253"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseHostName(tt.in)
			if tt.err == "" {
				if err != nil || got != tt.want {
					t.Errorf("got %q, %v, want %q", got, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, error %v, want %q", got, err, tt.err)
			}
		})
	}
}

func TestHostOfHeader(t *testing.T) {
	for in, want := range map[string]string{
		"a.example": "a.example", "A.Example.:8443": "a.example", "a.example..": "a.example", "a.example:": "a.example", "192.0.2.1:1": "192.0.2.1",
		"[2001:DB8::1]:443": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "": "", ":443": "", "a.example:1:2": "a.example", "[a.example]:1": "a.example", "no address7": "no address7",
	} {
		if got := wireName(withoutPort(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What a name is in the configuration has one form, that a peer's name has too.
func FuzzParseHostName(f *testing.F) {
	for _, s := range []string{"a.example", "*.b.example", "bücher.test", "192.0.2.1", "::1", "a_b.", "ﬃ.test", "*", "xn--a.test"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := ParseHostName(s)
		if err != nil {
			return
		}
		if again, err := ParseHostName(name); err != nil || again != name {
			t.Fatalf("%q is %q, and that %q, %v", s, name, again, err)
		}
		if strings.HasPrefix(name, "*") {
			return
		}
		if got := wireName(name); got != name {
			t.Fatalf("%q is %q, and from a peer %q", s, name, got)
		}
	})
}
