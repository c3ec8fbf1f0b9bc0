// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// maxLeaves bounds the leaf certificates that are remembered of one process.
const maxLeaves = 4096

// leafCache parses each leaf certificate once.
type leafCache struct {
	mu sync.RWMutex
	m  map[[sha256.Size]byte]leafInfo // by hash of the DER; guarded by mu
}

type leafInfo struct {
	cert *x509.Certificate
	id   keymanager.KeyID
}

func newLeafCache() *leafCache { return &leafCache{m: map[[sha256.Size]byte]leafInfo{}} }

// parse returns the certificate and the id of its key.
func (c *leafCache) parse(der []byte) (*x509.Certificate, keymanager.KeyID, error) {
	sum := sha256.Sum256(der)
	c.mu.RLock()
	info, ok := c.m[sum]
	c.mu.RUnlock()
	if ok {
		return info.cert, info.id, nil
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, keymanager.KeyID{}, err
	}
	info = leafInfo{cert, keymanager.KeyIDOf(cert)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= maxLeaves {
		clear(c.m)
	}
	c.m[sum] = info
	return info.cert, info.id, nil
}
