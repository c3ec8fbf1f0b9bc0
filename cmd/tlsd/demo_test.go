// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os/exec"
	"testing"
)

// TestCurlLineIsOneCommand lets a shell take the line apart again.
func TestCurlLineIsOneCommand(t *testing.T) {
	for _, tc := range []struct {
		name, ca string
		addr     net.Addr
		want     string
	}{
		{"plain", "/tmp/tlsd-demo-1/ca.pem", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8443}, "curl|--cacert|/tmp/tlsd-demo-1/ca.pem|https://127.0.0.1:8443/|"},
		{"spaces-and-quotes", "/tmp/my dir's/$HOME/ca.pem", &net.TCPAddr{IP: net.IPv4zero, Port: 1}, "curl|--cacert|/tmp/my dir's/$HOME/ca.pem|https://localhost:1/|"},
		{"ipv6", "/ca.pem", &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, "curl|--cacert|/ca.pem|https://[::1]:1/|"},
		{"unix", "/ca.pem", &net.UnixAddr{Net: "unix", Name: "/run/a b.sock"}, "curl|--cacert|/ca.pem|--unix-socket|/run/a b.sock|https://localhost/|"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := exec.Command("sh", "-c", "set -- "+curlLine(tc.ca, tc.addr)+`; printf '%s|' "$@"`).CombinedOutput()
			if err != nil || string(out) != tc.want {
				t.Errorf("got %q, want %q (%v)", out, tc.want, err)
			}
		})
	}
}
