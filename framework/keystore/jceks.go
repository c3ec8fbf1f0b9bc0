// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto/des"
	"crypto/md5"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
)

// readPBEJCEKS reads the parameters of Sun's PBEWithMD5AndTripleDES, which
// protects keys in JCEKS stores.
func readPBEJCEKS(params cryptobyte.String, work *budget) (*scheme, error) {
	salt, iterations, err := readPBEParams(params, work)
	if err != nil {
		return nil, err
	}
	if len(salt) != 8 {
		return nil, &DamagedError{Where: fmt.Sprintf("salt of %d bytes, not 8", len(salt))}
	}
	derive := func(ctx context.Context, pw password) (key, iv []byte, err error) {
		out, err := deriveJCEKS(ctx, pw.bytes, salt, int(iterations))
		if err != nil {
			return nil, nil, err
		}
		return out[:24:24], out[24:], nil
	}
	return &scheme{iterations: iterations, derive: derive, block: des.NewTripleDESCipher}, nil
}

// deriveJCEKS derives 24 bytes of key and 8 of IV: each half of the salt is
// hashed with the password over and over. Equal halves are made different by a
// swap that the JDK got wrong once, and has to get wrong for ever.
func deriveJCEKS(ctx context.Context, pw, salt []byte, iterations int) ([]byte, error) {
	salt = slices.Clone(salt)
	if string(salt[:4]) == string(salt[4:]) {
		salt[0], salt[1], salt[2] = salt[3], salt[0], salt[1]
	}
	var out []byte
	h := md5.New()
	for _, d := range [][]byte{salt[:4:4], salt[4:]} {
		for i := range iterations {
			if i%untilCheck == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			h.Reset()
			h.Write(d)
			h.Write(pw)
			d = h.Sum(nil)
		}
		out = append(out, d...)
	}
	return out, nil
}

// javaStream skips one object of Java's serialisation (Java Object
// Serialization Specification, 6.4), as far as secret keys in JCEKS stores use
// it: nothing of it is kept, but what follows must be found.
type javaStream struct {
	s       *cryptobyte.String
	classes []*javaClass // by handle; nil for what is no class
}

type javaClass struct {
	name   string
	flags  uint8
	fields []byte // type codes
	super  *javaClass
}

const (
	tcNull         = 0x70
	tcReference    = 0x71
	tcClass        = 0x72
	tcObject       = 0x73
	tcString       = 0x74
	tcArray        = 0x75
	tcBlockData    = 0x77
	tcEndBlockData = 0x78

	scWriteMethod  = 0x01
	scSerializable = 0x02
)

// skipJavaObject skips one serialised object with its stream header.
func skipJavaObject(s *cryptobyte.String) error {
	var magic uint32
	j := &javaStream{s: s}
	if !s.ReadUint32(&magic) || magic != 0xaced0005 || !j.skip(0) {
		return &DamagedError{Where: "secret key is no Java object of the usual kind"}
	}
	return nil
}

func (j *javaStream) skip(depth int) bool {
	var tag uint8
	if depth > maxDepth || !j.s.ReadUint8(&tag) {
		return false
	}
	switch tag {
	case tcNull:
		return true
	case tcReference:
		return j.s.Skip(4)
	case tcString:
		j.classes = append(j.classes, nil)
		var text cryptobyte.String
		return j.s.ReadUint16LengthPrefixed(&text)
	case tcBlockData:
		var data cryptobyte.String
		return j.s.ReadUint8LengthPrefixed(&data)
	case tcArray:
		return j.skipArray(depth)
	case tcObject:
		c, ok := j.class(depth + 1)
		if !ok || c == nil {
			return false
		}
		j.classes = append(j.classes, nil)
		return j.skipFields(c, depth)
	}
	return false
}

// class reads a class descriptor, a reference to one, or null.
func (j *javaStream) class(depth int) (*javaClass, bool) {
	var tag uint8
	if depth > maxDepth || !j.s.ReadUint8(&tag) {
		return nil, false
	}
	switch tag {
	case tcNull:
		return nil, true
	case tcReference:
		const firstHandle = 0x7e0000
		var handle uint32
		if !j.s.ReadUint32(&handle) || handle < firstHandle || int(handle-firstHandle) >= len(j.classes) {
			return nil, false
		}
		c := j.classes[handle-firstHandle]
		return c, c != nil
	case tcClass:
		return j.newClass(depth)
	}
	return nil, false
}

func (j *javaStream) newClass(depth int) (*javaClass, bool) {
	c := new(javaClass)
	var name cryptobyte.String
	var count uint16
	if !j.s.ReadUint16LengthPrefixed(&name) || !j.s.Skip(8) || !j.s.ReadUint8(&c.flags) || !j.s.ReadUint16(&count) {
		return nil, false
	}
	c.name = string(name)
	j.classes = append(j.classes, c)
	for range count {
		var code uint8
		if !j.s.ReadUint8(&code) || !j.s.ReadUint16LengthPrefixed(&name) {
			return nil, false
		}
		if (code == 'L' || code == '[') && !j.skip(depth+1) { // the field's type, a string
			return nil, false
		}
		c.fields = append(c.fields, code)
	}
	var ok bool
	if !j.skipAnnotation(depth) {
		return nil, false
	}
	c.super, ok = j.class(depth + 1)
	return c, ok
}

// skipAnnotation skips what a class or object wrote besides its fields.
func (j *javaStream) skipAnnotation(depth int) bool {
	for len(*j.s) > 0 {
		if (*j.s)[0] == tcEndBlockData {
			return j.s.Skip(1)
		}
		if !j.skip(depth + 1) {
			return false
		}
	}
	return false
}

// skipFields skips the values of an object, those of its superclasses first.
func (j *javaStream) skipFields(c *javaClass, depth int) bool {
	if c.super != nil && (depth > maxDepth || !j.skipFields(c.super, depth+1)) {
		return false
	}
	if c.flags&scSerializable == 0 {
		return false
	}
	for _, code := range c.fields {
		if !j.skipValue(code, 1, depth) {
			return false
		}
	}
	return c.flags&scWriteMethod == 0 || j.skipAnnotation(depth)
}

func (j *javaStream) skipArray(depth int) bool {
	c, ok := j.class(depth + 1)
	var count uint32
	if !ok || c == nil || len(c.name) < 2 || !j.s.ReadUint32(&count) || uint64(count) > uint64(len(*j.s)) {
		return false
	}
	j.classes = append(j.classes, nil)
	return j.skipValue(c.name[1], int(count), depth)
}

// skipValue skips count values of the type that code names.
func (j *javaStream) skipValue(code byte, count, depth int) bool {
	size := 0
	switch code {
	case 'B', 'Z':
		size = 1
	case 'C', 'S':
		size = 2
	case 'I', 'F':
		size = 4
	case 'J', 'D':
		size = 8
	case 'L', '[':
		for range count {
			if !j.skip(depth + 1) {
				return false
			}
		}
		return true
	}
	return size > 0 && j.s.Skip(size*count)
}
