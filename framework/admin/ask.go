// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// Ask gets path from what is served at address, host:port or unix:PATH, and
// returns the status and the text. An address that stands for all of a machine's,
// such as 0.0.0.0:9100, is asked on loopback. No proxy is used.
func Ask(ctx context.Context, address, path string) (status int, text string, err error) {
	network, where := "tcp", address
	if p, ok := strings.CutPrefix(address, "unix:"); ok {
		network, where = "unix", p
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		// Dialling no host, or an unspecified one, dials this machine.
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, where)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, strings.TrimSuffix(string(body), "\n"), err
}
