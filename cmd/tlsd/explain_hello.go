// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"slices"
)

// Extensions of a ClientHello (RFC 8446, 4.2; RFC 8422, 5.1; RFC 7627).
const (
	extServerName        = 0
	extGroups            = 10
	extPointFormats      = 11
	extSchemes           = 13
	extMasterSecret      = 23
	extSupportedVersions = 43
	extKeyShare          = 51
)

// hello returns the record that a connection of such a client begins with
// (RFC 8446, 4.1.2). serverName may be empty. It names no application protocol,
// since that is for the service to know and no choice depends on it.
func (p clientProfile) hello(serverName string) ([]byte, error) {
	extensions := slices.Concat(
		extension(extGroups, vector16(uint16s(p.groups))),
		extension(extPointFormats, vector8([]byte{0})), // uncompressed
		extension(extSchemes, vector16(uint16s(p.schemes))),
		extension(extMasterSecret, nil),
	)
	if serverName != "" {
		host := slices.Concat([]byte{0}, vector16([]byte(serverName))) // RFC 6066, 3
		extensions = append(extension(extServerName, vector16(host)), extensions...)
	}
	if slices.Contains(p.versions, tls.VersionTLS13) {
		shares, err := keyShares(p.groups)
		if err != nil {
			return nil, err
		}
		extensions = slices.Concat(extensions,
			extension(extSupportedVersions, vector8(uint16s(p.versions))),
			extension(extKeyShare, vector16(shares)))
	}
	random := make([]byte, 32+32) // and a session id
	rand.Read(random)
	body := slices.Concat(
		uint16s([]uint16{tls.VersionTLS12}), random[:32], vector8(random[32:]),
		vector16(uint16s(p.suites)), vector8([]byte{0}), // no compression
		vector16(extensions))
	message := slices.Concat([]byte{1, 0}, vector16(body)) // type, and the first of three bytes of length
	return slices.Concat([]byte{22}, uint16s([]uint16{tls.VersionTLS10}), vector16(message)), nil
}

// keyShares returns a share of each group, where a real client sends one or
// two: a server that wants another would ask for it, and go on the same.
func keyShares(groups []tls.CurveID) ([]byte, error) {
	var all []byte
	for _, g := range groups {
		share, err := keyShare(g)
		if err != nil {
			return nil, fmt.Errorf("key share of group %v: %w", g, err)
		}
		all = slices.Concat(all, uint16s([]tls.CurveID{g}), vector16(share))
	}
	return all, nil
}

func keyShare(g tls.CurveID) ([]byte, error) {
	if g == tls.X25519MLKEM768 {
		kem, err := mlkem.GenerateKey768()
		if err != nil {
			return nil, err
		}
		share, err := keyShare(tls.X25519)
		return append(kem.EncapsulationKey().Bytes(), share...), err
	}
	curve, ok := map[tls.CurveID]ecdh.Curve{
		tls.X25519: ecdh.X25519(), tls.CurveP256: ecdh.P256(), tls.CurveP384: ecdh.P384(), tls.CurveP521: ecdh.P521(),
	}[g]
	if !ok {
		return nil, fmt.Errorf("no such group")
	}
	key, err := curve.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key.PublicKey().Bytes(), nil
}

func extension(id uint16, data []byte) []byte {
	return slices.Concat(uint16s([]uint16{id}), vector16(data))
}

func vector8(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }

func vector16(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

func uint16s[T ~uint16](list []T) []byte {
	var b []byte
	for _, v := range list {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return b
}
