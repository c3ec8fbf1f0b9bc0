// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import "crypto/tls"

// Role is the side of the handshake that the credential is for.
type Role uint8

// Roles. The zero Role is none and is refused.
const (
	RoleServer Role = 1 + iota
	RoleClient
)

func (r Role) String() string {
	switch r {
	case RoleServer:
		return "server"
	case RoleClient:
		return "client"
	}
	return "none"
}

// Auth is the set of authentication algorithms that the cipher suites common
// to both peers allow. In TLS 1.3 it is both; in TLS 1.2 a client may offer
// ECDSA schemes and only RSA suites.
type Auth uint8

// Members of Auth.
const (
	AuthRSA   Auth = 1 << iota
	AuthECDSA      // ECDSA and EdDSA
)

// Hello is what a key manager may know of a handshake when it chooses. It is
// plain data: nothing in it refers to a connection.
type Hello struct {
	Role       Role
	Listener   string                // the listener's listen value, or the backend's URL in the client role
	Alias      string                // what the listener or host demands, in any case; empty: any. An answer with another is refused
	ServerName string                // lower case, no trailing dot; empty: none
	Version    uint16                // the version that will be negotiated, tls.VersionTLS12 or tls.VersionTLS13
	Auth       Auth                  // by the common cipher suites
	Schemes    []tls.SignatureScheme // the peer's, in its order
	Groups     []tls.CurveID         // in TLS 1.2 an EC leaf's curve must be among them
	ALPN       []string              // offered by the peer
	Issuers    [][]byte              // acceptable issuers, DER of RDNSequence; client role only

	// ChainsElsewhere says that the peer has, or may have, a list of its own for
	// signatures of certificates (signature_algorithms_cert, RFC 8446, 4.2.3),
	// which crypto/tls shows nobody: Schemes are about handshakes only.
	ChainsElsewhere bool

	ConnID string // claims of the front, for logs and policy
	Peer   string
}

// Fields is a set of fields of Hello, one bit each.
type Fields uint32

// Members of Fields.
const (
	FieldRole Fields = 1 << iota
	FieldListener
	FieldAlias
	FieldServerName
	FieldVersion
	FieldAuth
	FieldSchemes
	FieldGroups
	FieldALPN
	FieldIssuers
	FieldChainsElsewhere
)
