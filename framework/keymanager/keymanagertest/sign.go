// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanagertest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // for schemes with SHA-384 and SHA-512
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// certificateVerify returns what is signed in TLS 1.3 (RFC 8446, 4.4.3).
func certificateVerify(role string, hashLen int) []byte {
	m := append(bytes.Repeat([]byte{' '}, 64), "TLS 1.3, "+role+" CertificateVerify\x00"...)
	return append(m, bytes.Repeat([]byte{0xa5}, hashLen)...)
}

// serverKeyExchange returns what a server signs in TLS 1.2 (RFC 8422, 5.4).
func serverKeyExchange(curve tls.CurveID, point []byte) []byte {
	m := append(bytes.Repeat([]byte{0x5a}, 64), 3, byte(curve>>8), byte(curve), byte(len(point)))
	return append(m, point...)
}

func x25519Exchange() []byte { return serverKeyExchange(tls.X25519, make([]byte, 32)) }

// transcript returns what a client signs in TLS 1.2 (RFC 5246, 7.4.8), each
// message with a body of that many bytes.
func transcript(body int) []byte {
	var m []byte
	for _, typ := range []byte{1, 2, 11, 12, 13, 14, 11, 16} {
		m = append(m, typ, byte(body>>16), byte(body>>8), byte(body))
		m = append(m, make([]byte, body)...)
	}
	return m
}

// scheme is a signature scheme as the standard library verifies it.
type scheme struct {
	id    tls.SignatureScheme
	hash  crypto.Hash // 0: the message itself is signed
	pss   bool
	tls12 bool // of TLS 1.2 only
}

func schemesOf(k testca.KeyType) []scheme {
	switch k {
	case testca.P256:
		return []scheme{{id: tls.ECDSAWithP256AndSHA256, hash: crypto.SHA256}}
	case testca.P384:
		return []scheme{{id: tls.ECDSAWithP384AndSHA384, hash: crypto.SHA384}, {id: tls.ECDSAWithP256AndSHA256, hash: crypto.SHA256, tls12: true}}
	case testca.P521:
		return []scheme{{id: tls.ECDSAWithP521AndSHA512, hash: crypto.SHA512}}
	case testca.Ed25519:
		return []scheme{{id: tls.Ed25519}}
	}
	var all []scheme
	for i, h := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		all = append(all,
			scheme{id: []tls.SignatureScheme{tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512}[i], hash: h, pss: true},
			scheme{id: []tls.SignatureScheme{tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512}[i], hash: h, tls12: true})
	}
	return all
}

func (s scheme) verify(pub crypto.PublicKey, msg, sig []byte) error {
	digest := msg
	if s.hash != 0 {
		h := s.hash.New()
		h.Write(msg)
		digest = h.Sum(nil)
	}
	ok := false
	switch pub := pub.(type) {
	case *rsa.PublicKey:
		if s.pss {
			return rsa.VerifyPSS(pub, s.hash, digest, sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		}
		return rsa.VerifyPKCS1v15(pub, s.hash, digest, sig)
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(pub, digest, sig)
	case ed25519.PublicKey:
		ok = ed25519.Verify(pub, msg, sig)
	}
	if !ok {
		return errors.New("the signature is not one of the message by the key")
	}
	return nil
}

func samePublicKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// handshakes are one message of each purpose.
func handshakes() map[keymanager.Purpose][]byte {
	return map[keymanager.Purpose][]byte{
		keymanager.ServerTLS13: certificateVerify("server", 32),
		keymanager.ClientTLS13: certificateVerify("client", 48),
		keymanager.ServerTLS12: x25519Exchange(),
		keymanager.ClientTLS12: transcript(100),
	}
}

func (s suite) signatures(t *testing.T) {
	ca := newCA(t)
	types := []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519}
	var entries []testca.StoreEntry
	for _, k := range types {
		entries = append(entries, ca.entry(strings.ToLower(string(k)), testca.Spec{Key: k}))
	}
	km := s.open(t, keymanager.Options{}, newStore(t, entries...).source())
	for i, k := range types {
		t.Run(string(k), func(t *testing.T) {
			h := demand(entries[i].Alias, hello(""))
			h.Schemes = append(h.Schemes, tls.ECDSAWithP521AndSHA512, tls.Ed25519)
			cred, err := km.Select(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			for _, scheme := range schemesOf(k) {
				for purpose, msg := range handshakes() {
					in13 := purpose == keymanager.ServerTLS13 || purpose == keymanager.ClientTLS13
					if in13 && scheme.tls12 {
						continue
					}
					if err := signAndVerify(t, cred.Key, scheme, purpose, msg, entries[i].Cert.Cert.PublicKey); err != nil {
						t.Errorf("%v, %v: %v", scheme.id, purpose, err)
					}
				}
			}
		})
	}
}

func signAndVerify(t testing.TB, key keymanager.Key, s scheme, purpose keymanager.Purpose, msg []byte, pub crypto.PublicKey) error {
	t.Helper()
	sig, err := key.Sign(t.Context(), &keymanager.SignRequest{Scheme: s.id, Purpose: purpose, Message: msg, ConnID: "conn"})
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return s.verify(pub, msg, sig)
}

// trial makes and verifies one signature by a credential.
func trial(t testing.TB, cred *keymanager.Credential) error {
	t.Helper()
	return signAndVerify(t, cred.Key, scheme{id: tls.ECDSAWithP256AndSHA256, hash: crypto.SHA256},
		keymanager.ServerTLS13, certificateVerify("server", 32), cred.Leaf.PublicKey)
}

// refusals asks for signatures that no handshake needs.
func (s suite) refusals(t *testing.T) {
	ca := newCA(t)
	e := ca.entry("ec", named("w.test"))
	km := s.open(t, keymanager.Options{}, newStore(t, e).source())
	cred, err := km.Select(t.Context(), hello("w.test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range refused(t) {
		t.Run(r.name, func(t *testing.T) {
			scheme := r.scheme
			if scheme == 0 {
				scheme = tls.ECDSAWithP256AndSHA256
			}
			sig, err := cred.Key.Sign(t.Context(), &keymanager.SignRequest{Scheme: scheme, Purpose: r.purpose, Message: r.msg})
			if !errors.Is(err, keymanager.ErrNotHandshake) || len(sig) > 0 {
				t.Errorf("sign: %d bytes, %v; want an error that wraps ErrNotHandshake", len(sig), err)
			}
		})
	}
	if err := trial(t, cred); err != nil {
		t.Errorf("after the refusals: %v", err)
	}
}

type refusal struct {
	name    string
	purpose keymanager.Purpose
	msg     []byte
	scheme  tls.SignatureScheme // 0: one that fits the key
}

func refused(t *testing.T) []refusal {
	t.Helper()
	server, client := certificateVerify("server", 32), certificateVerify("client", 32)
	digest := sha256.Sum256([]byte("anything"))
	token := []byte("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9")
	all := []refusal{
		{"other_role", keymanager.ServerTLS13, client, 0},
		{"other_role_of_client", keymanager.ClientTLS13, server, 0},
		{"byte_too_many", keymanager.ServerTLS13, certificateVerify("server", 33), 0},
		{"byte_too_few", keymanager.ServerTLS13, certificateVerify("server", 31), 0},
		{"no_purpose", 0, server, 0},
		{"scheme_of_another_key", keymanager.ServerTLS13, server, tls.PSSWithSHA256},
		{"scheme_of_another_curve", keymanager.ServerTLS13, server, tls.ECDSAWithP384AndSHA384},
		{"scheme_with_sha1", keymanager.ServerTLS12, x25519Exchange(), tls.ECDSAWithSHA1},
		// The first bytes would be taken for a digest.
		{"scheme_without_hash", keymanager.ServerTLS12, append(digest[:], x25519Exchange()[len(digest):]...), tls.Ed25519},
		{"tls12_unknown_curve", keymanager.ServerTLS12, serverKeyExchange(21, make([]byte, 57)), 0},
		{"tls12_length_of_another_curve", keymanager.ServerTLS12, serverKeyExchange(tls.CurveP256, make([]byte, 97)), 0},
		{"tls12_byte_too_many", keymanager.ServerTLS12, append(x25519Exchange(), 0), 0},
		{"tls12_byte_too_few", keymanager.ServerTLS12, x25519Exchange()[:99], 0},
		{"client12_byte_too_many", keymanager.ClientTLS12, append(transcript(10), 0), 0},
		{"client12_no_hello", keymanager.ClientTLS12, transcript(10)[14:], 0},
		{"client12_over_256_KiB", keymanager.ClientTLS12, transcript(32 << 10), 0},
	}
	csr := requestToBeSigned(t)
	for purpose := keymanager.ServerTLS13; purpose <= keymanager.ClientTLS12; purpose++ {
		where := strings.ReplaceAll(purpose.String(), " ", "_")
		all = append(all,
			refusal{"csr_as_" + where, purpose, csr, 0},
			refusal{"token_as_" + where, purpose, token, 0},
			refusal{"digest_as_" + where, purpose, digest[:], 0},
			refusal{"nothing_as_" + where, purpose, nil, 0})
	}
	return all
}
