// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package backend is where decrypted traffic goes.
//
// [Parse] reads a backend's URL. What it names is served by one of three:
// [NewHTTP] is a reverse proxy for http, https, h2c and http+unix, [NewBytes]
// forwards a byte stream to tcp, tls and unix, and [NewHello] is the built-in
// page that shows the reader's own connection.
//
// The package terminates no TLS and knows no keys: who accepts the connections
// says by [WithInfo] what served them, and tells its *tls.Config for backends
// ready made.
package backend
