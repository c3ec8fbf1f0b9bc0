// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// fault is why a handshake failed.
type fault struct {
	reason Reason
	err    error
}

// reasoned is what an error of a callback is that knows its Reason.
type reasoned interface {
	error
	handshakeReason() Reason
}

// faultOf returns why the handshake of c failed, of which crypto/tls says err. It
// knows less than there is to know where a callback answered without an error.
func (c *conn) faultOf(err error) fault {
	var known reasoned
	timeout := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case c.fault.err != nil:
		return c.fault
	case errors.As(err, &known):
		return fault{known.handshakeReason(), known}
	case !c.heard.Load() && !timeout:
		return fault{ReasonProbe, err}
	case timeout:
		return fault{ReasonTimeout, err}
	case isCertificateError(err):
		return fault{ReasonClientCertificate, err}
	case isOp(err, "remote error"):
		return fault{ReasonClientAlert, err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return fault{ReasonClosed, err}
	}
	if alert, ok := c.tail.alert(); ok && isOp(err, "local error") {
		return fault{ReasonClientAlert, fmt.Errorf("remote error, not encrypted: %w", alert)}
	}
	return fault{ReasonProtocol, err}
}

// isOp says whether crypto/tls sent an alert (local error) or got one (remote
// error).
func isOp(err error, op string) bool {
	o := (*net.OpError)(nil)
	return errors.As(err, &o) && o.Op == op
}

// isCertificateError says whether it is about the client's certificate. That
// there is none, crypto/tls says by a text only; a test holds it.
func isCertificateError(err error) bool {
	verification := (*tls.CertificateVerificationError)(nil)
	return errors.As(err, &verification) || err.Error() == "tls: client didn't provide a certificate"
}

// tail is the end of what a peer sent.
type tail struct {
	b [7]byte // as long as a record with an alert
	n int     // bytes in it
}

func (t *tail) add(b []byte) {
	if len(b) >= len(t.b) {
		t.n = copy(t.b[:], b[len(b)-len(t.b):])
		return
	}
	keep := copy(t.b[:], t.b[max(0, t.n+len(b)-len(t.b)):t.n])
	t.n = keep + copy(t.b[keep:], b)
}

// alert returns the fatal alert that the peer sent last, if it did so in the
// clear. A TLS 1.3 client that refuses our certificate does, when it has not
// switched to the keys that were agreed on: OpenSSL for one. crypto/tls tries to
// decrypt it and says that its MAC is bad.
func (t *tail) alert() (tls.AlertError, bool) {
	const typeAlert, fatal = 21, 2
	b := &t.b
	ok := t.n == len(b) && b[0] == typeAlert && b[1] == 3 && b[3] == 0 && b[4] == 2 && b[5] == fatal
	return tls.AlertError(b[6]), ok
}
