// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// text makes a string of what may be any bytes: an alias or an address as it was
// configured, a name that a stranger sent. On the wire strings are UTF-8, and one
// that isn't fails the whole call. What is replaced matches nothing.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// helloToProto takes what a stranger sent: names that are no UTF-8, as RFC 8701
// has clients offer, can't be strings on the wire and match nothing anyway.
func helloToProto(h *keymanager.Hello) *pb.SelectRequest {
	return &pb.SelectRequest{
		Role:       pb.SelectRequest_Role(h.Role),
		Listener:   text(h.Listener),
		Alias:      text(h.Alias),
		ServerName: text(h.ServerName),
		Version:    uint32(h.Version),
		Auth:       uint32(h.Auth),
		Schemes:    widen(h.Schemes),
		Groups:     widen(h.Groups),
		Alpn:       validOnly(h.ALPN),
		Issuers:    h.Issuers,
		ConnId:     h.ConnID,
		Peer:       text(h.Peer),

		ChainsElsewhere: h.ChainsElsewhere,
	}
}

func helloFromProto(m *pb.SelectRequest) *keymanager.Hello {
	return &keymanager.Hello{
		Role:       keymanager.Role(m.GetRole()),
		Listener:   m.GetListener(),
		Alias:      m.GetAlias(),
		ServerName: m.GetServerName(),
		Version:    uint16(m.GetVersion()),
		Auth:       keymanager.Auth(m.GetAuth()),
		Schemes:    narrow[tls.SignatureScheme](m.GetSchemes()),
		Groups:     narrow[tls.CurveID](m.GetGroups()),
		ALPN:       m.GetAlpn(),
		Issuers:    m.GetIssuers(),
		ConnID:     m.GetConnId(),
		Peer:       m.GetPeer(),

		ChainsElsewhere: m.GetChainsElsewhere(),
	}
}

// credentialToProto says what was selected. The key goes by its id; newest is
// the newest generation that the key process has.
func credentialToProto(c *keymanager.Credential, newest uint64) *pb.SelectResponse {
	id := keymanager.KeyIDOf(c.Leaf)
	return &pb.SelectResponse{
		Builder:          int32(c.Builder),
		Alias:            text(c.Alias),
		Generation:       c.Generation,
		Chain:            c.Chain,
		KeyId:            id[:],
		Schemes:          widen(c.Schemes),
		OcspStaple:       c.OCSPStaple,
		Reuse:            reuseToProto(c.Reuse),
		NewestGeneration: newest,
	}
}

// parseLeaf returns a certificate and the id of its key.
type parseLeaf func(der []byte) (*x509.Certificate, keymanager.KeyID, error)

// credentialFromProto returns what was selected, without its Key, and the key
// id. It fails where the leaf doesn't parse or isn't that key's.
func credentialFromProto(m *pb.SelectResponse, parse parseLeaf) (*keymanager.Credential, keymanager.KeyID, error) {
	if m.GetBuilder() < 0 {
		return nil, keymanager.KeyID{}, fmt.Errorf("credential %q: builder index %d", m.GetAlias(), m.GetBuilder())
	}
	if m.GetGeneration() > maxBelieved {
		return nil, keymanager.KeyID{}, fmt.Errorf("credential %q: generation %d", m.GetAlias(), m.GetGeneration())
	}
	leaf, id, err := checkLeaf(m.GetChain(), m.GetKeyId(), parse)
	if err != nil {
		return nil, id, fmt.Errorf("credential %q of builder %d: %w", m.GetAlias(), m.GetBuilder(), err)
	}
	return &keymanager.Credential{
		Builder:    int(m.GetBuilder()),
		Alias:      m.GetAlias(),
		Generation: m.GetGeneration(),
		Chain:      m.GetChain(),
		Leaf:       leaf,
		Schemes:    narrow[tls.SignatureScheme](m.GetSchemes()),
		OCSPStaple: m.GetOcspStaple(),
		Reuse:      reuseFromProto(m.GetReuse()),
	}, id, nil
}

// checkLeaf parses the first certificate of chain and compares its key id.
func checkLeaf(chain [][]byte, keyID []byte, parse parseLeaf) (*x509.Certificate, keymanager.KeyID, error) {
	if len(chain) == 0 {
		return nil, keymanager.KeyID{}, errors.New("no certificate")
	}
	leaf, id, err := parse(chain[0])
	if err != nil {
		return nil, keymanager.KeyID{}, err
	}
	if string(keyID) != string(id[:]) {
		return nil, id, errors.New("key id is not that of the leaf certificate")
	}
	return leaf, id, nil
}

func reuseToProto(r keymanager.Reuse) *pb.Reuse {
	if r == (keymanager.Reuse{}) {
		return nil
	}
	return &pb.Reuse{Vary: uint32(r.Vary), FromUnixNanos: unixNanos(r.From), UntilUnixNanos: unixNanos(r.Until)}
}

func reuseFromProto(m *pb.Reuse) keymanager.Reuse {
	if m == nil {
		return keymanager.Reuse{}
	}
	return keymanager.Reuse{
		Vary:  keymanager.Fields(m.GetVary()),
		From:  time.Unix(0, m.GetFromUnixNanos()),
		Until: time.Unix(0, m.GetUntilUnixNanos()),
	}
}

// unixNanos clamps to what int64 nanoseconds since 1970 can hold, the years 1678
// to 2262: certificates name years beyond.
func unixNanos(t time.Time) int64 {
	const maxSeconds = 1<<63/1_000_000_000 - 1
	s := min(max(t.Unix(), -maxSeconds), maxSeconds)
	return time.Unix(s, int64(t.Nanosecond())).UnixNano()
}

// signToProto asks for a signature by the key id. It keeps nothing of r.
func signToProto(id keymanager.KeyID, r *keymanager.SignRequest) *pb.SignRequest {
	return &pb.SignRequest{
		KeyId:    id[:],
		Scheme:   uint32(r.Scheme),
		Purpose:  pb.SignRequest_Purpose(r.Purpose),
		Message:  bytes.Clone(r.Message),
		Listener: text(r.Listener),
		ConnId:   r.ConnID,
		Peer:     text(r.Peer),
	}
}

// signFromProto returns the request and the id of the key that it is for. An id
// of the wrong length is the zero id, which no key has.
func signFromProto(m *pb.SignRequest) (*keymanager.SignRequest, keymanager.KeyID) {
	var id keymanager.KeyID
	if len(m.GetKeyId()) == len(id) {
		id = keymanager.KeyID(m.GetKeyId())
	}
	return &keymanager.SignRequest{
		Scheme:   tls.SignatureScheme(m.GetScheme()),
		Purpose:  keymanager.Purpose(m.GetPurpose()),
		Message:  m.GetMessage(),
		Listener: m.GetListener(),
		ConnID:   m.GetConnId(),
		Peer:     m.GetPeer(),
	}, id
}

func changeToProto(c keymanager.Change) *pb.Change {
	return &pb.Change{
		Generation:      c.Generation,
		Cause:           text(c.Cause),
		Names:           validOnly(c.Names),
		WildcardParents: validOnly(c.WildcardParents),
		NamesKnown:      c.NamesKnown,
		Failed:          text(c.Failed),
	}
}

func changeFromProto(m *pb.Change) keymanager.Change {
	return keymanager.Change{
		Generation:      m.GetGeneration(),
		Cause:           clean(m.GetCause(), maxErrorText),
		Names:           m.GetNames(),
		WildcardParents: m.GetWildcardParents(),
		NamesKnown:      m.GetNamesKnown(),
		Failed:          clean(m.GetFailed(), maxErrorText),
	}
}

// entryToProto says what a keystore holds. A usable entry goes with its key id.
func entryToProto(e keymanager.Entry) (*pb.Entry, error) {
	m := &pb.Entry{
		Builder: int32(e.Builder),
		Alias:   text(e.Alias),
		Kind:    e.Kind,
		Chain:   e.Chain,
		Schemes: widen(e.Schemes),
		Usable:  e.Usable,
		Reason:  text(e.Reason),
	}
	if !e.Usable || len(e.Chain) == 0 {
		return m, nil
	}
	leaf, err := x509.ParseCertificate(e.Chain[0])
	if err != nil {
		return nil, fmt.Errorf("entry %q of builder %d: %w", e.Alias, e.Builder, err)
	}
	id := keymanager.KeyIDOf(leaf)
	m.KeyId = id[:]
	return m, nil
}

// entryFromProto returns an entry without its Key, and, where it is usable, the
// parsed leaf and the key id.
func entryFromProto(m *pb.Entry, parse parseLeaf) (keymanager.Entry, *x509.Certificate, keymanager.KeyID, error) {
	e := keymanager.Entry{
		Builder: int(m.GetBuilder()),
		Alias:   m.GetAlias(),
		Kind:    m.GetKind(),
		Chain:   m.GetChain(),
		Schemes: narrow[tls.SignatureScheme](m.GetSchemes()),
		Usable:  m.GetUsable(),
		Reason:  clean(m.GetReason(), maxErrorText),
	}
	if e.Builder < 0 {
		return e, nil, keymanager.KeyID{}, fmt.Errorf("entry %q: builder index %d", e.Alias, e.Builder)
	}
	if !e.Usable {
		return e, nil, keymanager.KeyID{}, nil
	}
	leaf, id, err := checkLeaf(m.GetChain(), m.GetKeyId(), parse)
	if err != nil {
		return e, nil, id, fmt.Errorf("entry %q of builder %d: %w", e.Alias, e.Builder, err)
	}
	return e, leaf, id, nil
}

// validOnly copies names only where one has to go, which is rare.
func validOnly(names []string) []string {
	invalid := func(n string) bool { return !utf8.ValidString(n) }
	if !slices.ContainsFunc(names, invalid) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), invalid)
}

// widen and narrow keep nil, which means "all" where schemes are the
// credential's.
func widen[T ~uint16](in []T) []uint32 {
	if len(in) == 0 {
		return nil
	}
	out := make([]uint32, len(in))
	for i, v := range in {
		out[i] = uint32(v)
	}
	return out
}

func narrow[T ~uint16](in []uint32) []T {
	if len(in) == 0 {
		return nil
	}
	out := make([]T, 0, len(in))
	for _, v := range in {
		if v <= 0xffff {
			out = append(out, T(v))
		}
	}
	return out
}
