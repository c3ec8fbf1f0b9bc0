// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
)

// ErrNotHandshake is returned when a message to be signed is not visibly a TLS
// handshake of the declared purpose.
var ErrNotHandshake = errors.New("not a TLS handshake")

// Purpose is the place in a TLS handshake that a signature is for.
type Purpose uint8

// Purposes. The zero Purpose is none and is refused.
const (
	ServerTLS13 Purpose = 1 + iota // CertificateVerify of the server, RFC 8446, 4.4.3
	ServerTLS12                    // ServerKeyExchange with ECDHE, RFC 8422, 5.4
	ClientTLS13                    // CertificateVerify of the client, RFC 8446, 4.4.3
	ClientTLS12                    // CertificateVerify of the client, RFC 5246, 7.4.8
)

func (p Purpose) String() string {
	switch p {
	case ServerTLS13:
		return "TLS 1.3 server"
	case ServerTLS12:
		return "TLS 1.2 server"
	case ClientTLS13:
		return "TLS 1.3 client"
	case ClientTLS12:
		return "TLS 1.2 client"
	}
	return "none"
}

const (
	randomLen        = 32
	maxClientTLS12   = 256 << 10 // bytes; a client's TLS 1.2 transcript, with both chains in it
	serverContext    = "TLS 1.3, server CertificateVerify\x00"
	clientContext    = "TLS 1.3, client CertificateVerify\x00"
	namedCurve       = 3 // ECCurveType, RFC 8422, 5.4
	uncompressed     = 4 // first byte of an uncompressed point, SEC 1, 2.3.3
	typeClientHello  = 1
	typeServerHello  = 2
	typeKeyExchange  = 16 // ClientKeyExchange, the last message before CertificateVerify
	handshakeHeader  = 4  // type and 24-bit length
	signaturePadding = 64
)

// Check returns nil if Message is visibly a TLS handshake message of the
// declared purpose and Scheme may sign such a message, else an error that wraps
// ErrNotHandshake. A signer that refuses what fails here can impersonate its
// owner in a handshake that is going on and do nothing else: no CSR, token,
// document or bare digest passes.
func (r *SignRequest) Check() error {
	ok := false
	switch r.Purpose {
	case ServerTLS13:
		ok = isTLS13(r.Message, serverContext) && schemeInTLS13(r.Scheme)
	case ClientTLS13:
		ok = isTLS13(r.Message, clientContext) && schemeInTLS13(r.Scheme)
	case ServerTLS12:
		ok = isServerKeyExchange(r.Message)
	case ClientTLS12:
		ok = isClientTranscript(r.Message)
	}
	if !ok {
		return fmt.Errorf("sign for purpose %q with %v: %w", r.Purpose, r.Scheme, ErrNotHandshake)
	}
	return nil
}

// schemeInTLS13 says whether TLS 1.3 signs handshakes with s: RSA only by PSS.
func schemeInTLS13(s tls.SignatureScheme) bool {
	switch s {
	case tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512:
		return false
	}
	return true
}

// isTLS13 checks for 64 spaces, the context string with its zero byte and a
// transcript hash of SHA-256 or SHA-384, the hashes of the TLS 1.3 suites.
func isTLS13(msg []byte, context string) bool {
	head := signaturePadding + len(context)
	if len(msg) != head+32 && len(msg) != head+48 {
		return false
	}
	return bytes.Count(msg[:signaturePadding], []byte{' '}) == signaturePadding &&
		string(msg[signaturePadding:head]) == context
}

// isServerKeyExchange checks for two randoms and ServerECDHParams with a curve
// that crypto/tls offers and a point of its length.
func isServerKeyExchange(msg []byte) bool {
	const head = 2*randomLen + 4
	if len(msg) < head || msg[2*randomLen] != namedCurve {
		return false
	}
	curve := tls.CurveID(msg[2*randomLen+1])<<8 | tls.CurveID(msg[2*randomLen+2])
	point := msg[head:]
	if int(msg[head-1]) != len(point) {
		return false
	}
	switch curve {
	case tls.X25519:
		return len(point) == 32
	case tls.CurveP256:
		return len(point) == 65 && point[0] == uncompressed
	case tls.CurveP384:
		return len(point) == 97 && point[0] == uncompressed
	case tls.CurveP521:
		return len(point) == 133 && point[0] == uncompressed
	}
	return false
}

// isClientTranscript checks for a sequence of whole handshake messages that
// begins with ClientHello and ServerHello and ends with ClientKeyExchange.
func isClientTranscript(msg []byte) bool {
	if len(msg) > maxClientTLS12 {
		return false
	}
	var types []byte
	for len(msg) > 0 {
		if len(msg) < handshakeHeader {
			return false
		}
		n := int(msg[1])<<16 | int(msg[2])<<8 | int(msg[3])
		if len(msg)-handshakeHeader < n {
			return false
		}
		types = append(types, msg[0])
		msg = msg[handshakeHeader+n:]
	}
	return len(types) >= 3 && types[0] == typeClientHello && types[1] == typeServerHello &&
		types[len(types)-1] == typeKeyExchange
}
