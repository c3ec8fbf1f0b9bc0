// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package keystore reads the keystores people have into entries whose keys
// decrypt on demand: PKCS#12 (DER or BER), JKS, JCEKS, and PEM or DER files,
// recognised by content and never by name.
//
// [Open] reads structure and certificates. It takes each key's certificate as
// claimed, and decrypts no key. [Store.Prove] decrypts each key once, pairs it
// with its certificate by public key and records the verdict. [Entry.Signer]
// decrypts one key. [OpenViews] does all of that for the keystores of a tier and
// keeps the last good reading of each when files change. [Trusted] reads trust
// stores.
//
// A file is judged before it is worked on: iteration counts, sizes and nesting
// have limits, checked before any derivation, and every derivation runs under a
// context. Algorithms that are not read are refused by name. One bad entry never
// hides the good ones. The package chooses nothing: that is framework/choose.
//
// Decrypted keys are wiped where the package is done with them, as far as Go
// allows: copies that the standard library's key types make inside themselves
// stay until the garbage collector takes them. A key that lies unencrypted in its
// file lies so in memory too. Where keys are not kept, the password that opened
// a key is: the keystore and its password file may have been replaced by the
// time that the next signature is due.
package keystore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Format is what a keystore turned out to be.
type Format string

// Formats.
const (
	PKCS12 Format = "pkcs12"
	JKS    Format = "jks"
	JCEKS  Format = "jceks"
	PEM    Format = "pem" // DER keys and certificates too
)

// typeAuto is the Source.Type that leaves the format to the content.
const typeAuto = "auto"

// Store is one reading of one keystore. It does not change once it has been
// proven, and is then safe for concurrent use.
type Store struct {
	Format   Format
	Digest   [sha256.Size]byte // of all files' content
	Entries  []*Entry          // in store order
	Warnings []string          // what an operator should know, one line each

	src     keymanager.Source
	certs   []*certificate // all there are, entries' and others, in store order
	opening []string       // Warnings without those about the certificates of keys
}

// reader is an opening under way.
type reader struct {
	*Store
	work *budget
	pw   []password // readings of the store's password; nil: none was given
	bags int        // read so far
}

// Open reads the keystore at src. Keys stay encrypted and entries are claims
// until Prove. Passwords are read from src when they are needed; none is kept.
// The error names the file and is, where a caller can act on it, one of the
// types of this package.
func Open(ctx context.Context, src keymanager.Source, lim Limits) (*Store, error) {
	s, err := open(ctx, src, lim)
	if err != nil {
		return nil, fmt.Errorf("open keystore %q: %w", src.Name(), err)
	}
	return s, nil
}

// open is Open with errors that don't name the file.
func open(ctx context.Context, src keymanager.Source, lim Limits) (*Store, error) {
	files, err := readFiles(src.Paths)
	if err != nil {
		return nil, err
	}
	return openFiles(ctx, src, files, lim)
}

// openFiles opens what has been read.
func openFiles(ctx context.Context, src keymanager.Source, files []file, lim Limits) (*Store, error) {
	format, err := recognise(files, src.Type)
	if err != nil {
		return nil, err
	}
	spellings, err := src.Password()
	if err != nil {
		return nil, err
	}
	r := &reader{Store: &Store{Format: format, Digest: digest(files), src: src}, work: newBudget(lim), pw: readings(spellings)}
	wipeBytes(spellings)
	defer func() { wipe(r.pw) }()
	if err := r.read(ctx, files); err != nil {
		return nil, r.advise(err)
	}
	r.assignAliases()
	r.opening = r.Warnings
	r.noteUnrelated()
	return r.Store, nil
}

func (r *reader) read(ctx context.Context, files []file) error {
	switch r.Format {
	case PKCS12:
		return r.readPKCS12(ctx, files[0].data)
	case JKS, JCEKS:
		return r.readJKS(files[0].data)
	}
	return r.readPEM(files)
}

// advise adds to an unsupported algorithm the command that converts the store.
func (s *Store) advise(err error) error {
	u, ok := err.(*UnsupportedError)
	if !ok || u.Hint != "" {
		return err
	}
	const keytool = "keytool -importkeystore -srckeystore OLD -destkeystore NEW -deststoretype pkcs12"
	c := *u
	switch s.Format {
	case PKCS12: // openssl exports one key and no more
		c.Hint = "convert it: openssl pkcs12 -legacy -in OLD -out TEMP.pem && openssl pkcs12 -export -in TEMP.pem -out NEW, then remove TEMP.pem; with more than one key: " + keytool
	case PEM: // most of what is not read here is in OpenSSL's legacy provider
		c.Hint = "convert it: openssl pkcs8 -provider legacy -provider default -topk8 -v2 aes-256-cbc -in OLD -out NEW"
	default:
		c.Hint = "convert it: " + keytool
	}
	return &c
}

func (s *Store) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// Find returns the entry with an alias, compared without case, or nil.
func (s *Store) Find(alias string) *Entry {
	for _, e := range s.Entries {
		if strings.EqualFold(e.Alias, alias) {
			return e
		}
	}
	return nil
}

// assignAliases numbers the entries without a name, as Java does, and makes
// equal names differ: of two equal ones Java silently drops the first.
func (s *Store) assignAliases() {
	taken := make(map[string]bool)
	last := make(map[string]int) // the suffix given last, by name
	for _, e := range s.Entries {
		if e.Alias == "" {
			continue
		}
		name := e.Alias
		for i := max(last[fold(name)]+1, 2); taken[fold(e.Alias)]; i++ {
			e.Alias = fmt.Sprintf("%s-%d", name, i)
			last[fold(name)] = i
		}
		if e.Alias != name {
			s.warn("alias %q stands for more than one entry: this one is called %q", name, e.Alias)
		}
		taken[fold(e.Alias)] = true
	}
	number := 0
	for _, e := range s.Entries {
		for e.Alias == "" {
			number++
			if name := strconv.Itoa(number); !taken[name] {
				e.Alias = name
			}
		}
	}
}

// fold makes aliases that differ in case equal.
func fold(alias string) string { return strings.ToLower(strings.ToUpper(alias)) }
