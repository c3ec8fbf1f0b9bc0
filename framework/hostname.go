// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Lengths of RFC 1035, 2.3.4, without the root.
const (
	maxLabel = 63
	maxName  = 253
)

// ParseHostName returns the one form of a name of a [Host] that names are
// compared in: lower case, no dot at the end, U-labels as A-labels (RFC 5891),
// an address as RFC 5952 writes it. A wildcard is the whole left-most label, as
// in *.example.com. The error quotes name and says what to write instead.
func ParseHostName(name string) (string, error) {
	plain := strings.TrimSuffix(strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".").Replace(name), ".")
	if ip, err := netip.ParseAddr(strings.Trim(plain, "[]")); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("%q: no client asks for an address with a zone: leave out %q", name, "%"+ip.Zone())
		}
		return ip.Unmap().String(), nil
	}
	rest, wild := strings.CutPrefix(plain, "*.")
	ascii, err := toASCII(rest)
	if err != nil {
		return "", fmt.Errorf("%q is no host name: %w", name, err)
	}
	if wild {
		ascii = "*." + ascii
	}
	return ascii, nil
}

// toASCII returns name with its labels in lower case and as A-labels. It works
// label by label, since IDNA knows no underscore and people do use it.
func toASCII(name string) (string, error) {
	labels := strings.Split(name, ".")
	for i, l := range labels {
		if strings.ContainsFunc(l, func(r rune) bool { return r >= utf8.RuneSelf }) {
			a, err := idna.Lookup.ToASCII(l)
			if err != nil {
				return "", fmt.Errorf("its label %q is none of IDNA's: %w", l, err)
			}
			l = a
		}
		labels[i] = strings.ToLower(l)
		if err := checkLabel(labels[i]); err != nil {
			return "", err
		}
	}
	ascii := strings.Join(labels, ".")
	switch last := labels[len(labels)-1]; {
	case len(ascii) > maxName:
		return "", fmt.Errorf("it is longer than %d bytes", maxName)
	case strings.Trim(last, "0123456789") == "":
		return "", errors.New("it ends in a number and is no address")
	}
	return ascii, nil
}

func checkLabel(l string) error {
	switch {
	case l == "":
		return errors.New("a label is empty: write it as in a.example")
	case strings.Contains(l, "*"):
		return errors.New("a wildcard stands for the whole left-most label, as in *.example.com; what no host names is the listener's own")
	case len(l) > maxLabel:
		return fmt.Errorf("a label is longer than %d bytes", maxLabel)
	case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return fmt.Errorf("%q is no label: a name has no scheme, port or path", l)
	}
	return nil
}

// wireName returns a name as a peer sent it in the form of ParseHostName. One
// that is none of a host stays so, but for dots at its end: nobody is to get
// past a host by more of them than a backend looks at.
func wireName(name string) string {
	name = strings.ToLower(strings.TrimRight(name, "."))
	if name == "" || !strings.Contains(name, ":") && name[len(name)-1] > '9' {
		return name // no address, which is told without an error being made
	}
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return ip.Unmap().String()
	}
	return name
}

// withoutPort returns the host of an HTTP Host header (RFC 9110, 7.2). It ends at
// the first colon, whatever comes then, since backends read it so.
func withoutPort(host string) string {
	end := ":"
	if strings.HasPrefix(host, "[") {
		host, end = host[1:], "]"
	}
	host, _, _ = strings.Cut(host, end)
	return host
}
