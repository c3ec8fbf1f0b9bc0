// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"testing"
)

func TestListensAt(t *testing.T) {
	tcp := func(addr string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tt := range []struct {
		socket  net.Addr
		address string
		want    bool
	}{
		{tcp("[::]:443"), ":443", true},
		{tcp("[::]:443"), "[::]:443", true},
		{tcp("[::]:443"), "0.0.0.0:443", false}, // would take IPv6 too, where IPv4 alone was asked for
		{tcp("0.0.0.0:443"), "0.0.0.0:443", true},
		{tcp("0.0.0.0:443"), ":443", true},
		{tcp("0.0.0.0:443"), "[::]:443", false},
		{tcp("127.0.0.1:443"), ":443", false},
		{tcp("127.0.0.1:443"), "localhost:443", true},
		{tcp("127.0.0.1:443"), "127.0.0.1:https", true},
		{tcp("127.0.0.1:443"), "127.0.0.1:8443", false},
		{tcp("[fe80::1%lo]:443"), "[fe80::1]:443", false},
		{tcp("127.0.0.1:443"), "unix:/run/s", false},
		{&net.UnixAddr{Name: "/run/s", Net: "unix"}, "unix:/run//s", true},
		{&net.UnixAddr{Name: "/run/t", Net: "unix"}, "unix:/run/s", false},
		{&net.UnixAddr{Name: "@s", Net: "unix"}, "unix:@s", true},
		{&net.UnixAddr{Name: "/run/s", Net: "unix"}, "127.0.0.1:443", false},
	} {
		if got := listensAt(tt.socket, tt.address); got != tt.want {
			t.Errorf("a socket at %v is %q: %v", tt.socket, tt.address, got)
		}
	}
}
