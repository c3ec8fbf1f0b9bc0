// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/binary"
	"strings"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// helloKey is a hello as far as an answer depends on it.
type helloKey struct {
	vary      keymanager.Fields
	role      keymanager.Role
	auth      keymanager.Auth
	version   uint16
	elsewhere bool
	name      knownName
	listener  string
	alias     string
	lists     string // schemes, groups, ALPN, issuers
}

// keyOf returns h as far as vary goes. It reports false where names count and
// are not known: a stranger could fill the memory with names then.
func keyOf(h *keymanager.Hello, vary keymanager.Fields, names *knownNames) (k helloKey, ok bool) {
	k.vary = vary
	has := func(f keymanager.Fields) bool { return vary&f != 0 }
	if has(keymanager.FieldServerName) {
		if names == nil {
			return helloKey{}, false
		}
		k.name = names.find(h.ServerName)
	}
	if has(keymanager.FieldRole) {
		k.role = h.Role
	}
	if has(keymanager.FieldAuth) {
		k.auth = h.Auth
	}
	if has(keymanager.FieldVersion) {
		k.version = h.Version
	}
	if has(keymanager.FieldChainsElsewhere) {
		k.elsewhere = h.ChainsElsewhere
	}
	if has(keymanager.FieldListener) {
		k.listener = h.Listener
	}
	if has(keymanager.FieldAlias) {
		k.alias = strings.ToLower(h.Alias)
	}
	k.lists = listsOf(h, vary)
	return k, true
}

// listsOf returns the lists of h as far as vary goes, each behind its length,
// so that no two of different content are alike.
func listsOf(h *keymanager.Hello, vary keymanager.Fields) string {
	var room [256]byte
	b := room[:0]
	if vary&keymanager.FieldSchemes != 0 {
		b = appendNumbers(b, h.Schemes)
	}
	if vary&keymanager.FieldGroups != 0 {
		b = appendNumbers(b, h.Groups)
	}
	if vary&keymanager.FieldALPN != 0 {
		b = appendTexts(b, h.ALPN)
	}
	if vary&keymanager.FieldIssuers != 0 {
		b = appendTexts(b, h.Issuers)
	}
	return string(b)
}

func appendNumbers[T ~uint16](b []byte, list []T) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func appendTexts[T ~string | ~[]byte](b []byte, list []T) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	return b
}

// knownNames are the server names that a generation knows.
type knownNames struct{ exact, parents map[string]bool }

func newKnownNames(c *keymanager.Change) *knownNames {
	return &knownNames{exact: setOf(c.Names), parents: setOf(c.WildcardParents)}
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// knownName is a server name as a generation knows it: all that it doesn't know
// are alike, and so are all that one wildcard carries.
type knownName struct {
	how  knownAs
	name string
}

type knownAs uint8

const (
	noName knownAs = iota
	unknownName
	exactName
	wildcardName // name is what stands behind the wildcard's dot
)

func (n *knownNames) find(serverName string) knownName {
	if serverName == "" {
		return knownName{}
	}
	exact, parent := choose.Forms(serverName)
	switch {
	case n.exact[exact]:
		return knownName{exactName, exact}
	case parent != "" && n.parents[parent]:
		return knownName{wildcardName, parent}
	}
	return knownName{how: unknownName}
}
