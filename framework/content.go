// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"

	"github.com/tlsd/tlsd/framework/backend"
)

// content is one reading of the trust stores and revocation lists: each is read
// once, so that all that is made from it trusts the same.
type content struct {
	keys   *Keys
	known  *content // what it warned of is not warned of again; nil: nothing
	stores map[TrustStore]trusted
	files  map[string]*crlFile
	said   map[ruling]*revocation // what the lists say, shared by those that ask the same
}

// crlFile is a file with revocation lists.
type crlFile struct {
	raw    []byte // nil once all is made from it
	digest [sha256.Size]byte
}

// ruling is what a revocation is made from.
type ruling struct {
	path    string
	clients [sha256.Size]byte // digest of the client CAs
	expired CRLExpired
}

// trusted is the content of a trust store.
type trusted struct {
	certs  []*x509.Certificate
	pool   *x509.CertPool
	digest [sha256.Size]byte // of the certificates, in whatever order they stand
}

func newContent(keys *Keys) *content {
	return &content{keys: keys, stores: map[TrustStore]trusted{}, files: map[string]*crlFile{}, said: map[ruling]*revocation{}}
}

// trust returns the content of a trust store, which the key process reads.
func (c *content) trust(ctx context.Context, store TrustStore) (trusted, error) {
	if t, ok := c.stores[store]; ok {
		return t, nil
	}
	certs, warnings, err := c.keys.readTrust(ctx, store)
	if err != nil {
		return trusted{}, &contentError{reloadedTrust, err}
	}
	t := newTrusted(certs)
	if c.known == nil || c.known.stores[store].digest != t.digest {
		c.keys.warnOfTrust(store, warnings)
	}
	c.stores[store] = t
	return t, nil
}

func newTrusted(certs []*x509.Certificate) trusted {
	t := trusted{certs: certs, pool: x509.NewCertPool()}
	var prints [][sha256.Size]byte
	for _, c := range certs {
		t.pool.AddCert(c)
		prints = append(prints, sha256.Sum256(c.Raw))
	}
	slices.SortFunc(prints, func(a, b [sha256.Size]byte) int { return slices.Compare(a[:], b[:]) })
	all := sha256.New()
	for _, p := range slices.Compact(prints) {
		all.Write(p[:])
	}
	all.Sum(t.digest[:0])
	return t
}

// revocation returns what the lists in the file at path say of clients of ca.
func (c *content) revocation(path string, ca trusted, expired CRLExpired) (*revocation, error) {
	key := ruling{path, ca.digest, expired}
	if r := c.said[key]; r != nil {
		return r, nil
	}
	f, err := c.file(path)
	if err != nil {
		return nil, err
	}
	lists, err := parseCRLs(f.raw)
	if err == nil {
		c.said[key], err = newRevocation(path, lists, ca.certs, expired)
	}
	if err != nil {
		return nil, wrongList(path, err)
	}
	return c.said[key], nil
}

// file reads a file with revocation lists, which hold no secret.
func (c *content) file(path string) (*crlFile, error) {
	if f := c.files[path]; f != nil {
		return f, nil
	}
	raw, err := readCRLFile(path)
	if err != nil {
		return nil, wrongList(path, err)
	}
	c.files[path] = &crlFile{raw: raw, digest: sha256.Sum256(raw)}
	return c.files[path], nil
}

// contentError is an error of what is read here.
type contentError struct {
	what string // as Observer.Reloaded has it
	err  error
}

func (e *contentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *contentError) Unwrap() error { return e.err }

func wrongList(path string, err error) error {
	return &contentError{reloadedCRL, fmt.Errorf("revocation lists %q: %w", path, err)}
}

// forget drops what is needed only while routes are made.
func (c *content) forget() {
	for _, f := range c.files {
		f.raw = nil
	}
}

// readTrust reads the trust stores that the listeners name.
func (c *content) readTrust(ctx context.Context, listeners []Listener) error {
	for i := range listeners {
		for _, site := range listeners[i].sites() {
			for _, store := range site.stores() {
				if _, err := c.trust(ctx, store); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readLists reads the files with revocation lists that the listeners name.
func (c *content) readLists(listeners []Listener) error {
	for i := range listeners {
		for _, site := range listeners[i].sites() {
			if path := site.crl(); path != "" {
				if _, err := c.file(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stores returns the trust stores that l, which has no hosts, makes use of.
func (l *Listener) stores() []TrustStore {
	var stores []TrustStore
	if l.ClientAuth.asks() {
		stores = append(stores, l.ClientCA)
	}
	if t, err := backend.Parse(l.Backend); err == nil && t.TLS() && l.BackendTLS.CA.Path != "" {
		stores = append(stores, l.BackendTLS.CA)
	}
	return stores
}

// crl returns the file with the revocation lists that l makes use of; empty: none.
func (l *Listener) crl() string {
	if l.ClientAuth.asks() {
		return l.ClientCRL
	}
	return ""
}

// differs says what of c and another reading is not the same.
func (c *content) differs(other *content) (trust, crls bool) {
	trust = !maps.EqualFunc(c.stores, other.stores, func(a, b trusted) bool { return a.digest == b.digest })
	crls = !maps.EqualFunc(c.files, other.files, func(a, b *crlFile) bool { return a.digest == b.digest })
	return trust, crls
}
