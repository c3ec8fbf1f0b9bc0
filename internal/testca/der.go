// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"bytes"
	"encoding/asn1"
)

// friendlyName returns the attribute, or nothing for an empty name.
func friendlyName(name string) []byte {
	if name == "" {
		return nil
	}
	return attribute(oidFriendlyName, raw(asn1.TagBMPString, false, utf16BE(name)))
}

// attribute returns an attribute with one value, RFC 7292, 4.2.
func attribute(oid asn1.ObjectIdentifier, value []byte) []byte {
	return sequence(der(oid), raw(asn1.TagSet, true, value))
}

func sequence(parts ...[]byte) []byte {
	return raw(asn1.TagSequence, true, bytes.Join(parts, nil))
}

// explicit wraps content in the context-specific tag 0.
func explicit(content []byte) []byte {
	return der(asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: content})
}

// implicit is a byte string under the context-specific tag 0.
func implicit(content []byte) []byte {
	return der(asn1.RawValue{Class: asn1.ClassContextSpecific, Bytes: content})
}

func raw(tag int, compound bool, content []byte) []byte {
	return der(asn1.RawValue{Tag: tag, IsCompound: compound, Bytes: content})
}

// der panics for what has no DER, which is a mistake in this package.
func der(v any) []byte {
	b, err := asn1.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
