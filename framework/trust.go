// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"slices"
)

// trusted is the content of a trust store.
type trusted struct {
	pool   *x509.CertPool
	digest [sha256.Size]byte // of the certificates, in whatever order they stand
}

// trustReader reads each trust store once, so that all that is made from it
// trusts the same.
type trustReader struct {
	keys *Keys
	seen map[TrustStore]trusted
}

func (r *trustReader) read(ctx context.Context, store TrustStore) (trusted, error) {
	if t, ok := r.seen[store]; ok {
		return t, nil
	}
	certs, err := r.keys.Trust(ctx, store)
	if err != nil {
		return trusted{}, err
	}
	t := trusted{pool: x509.NewCertPool()}
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
	r.seen[store] = t
	return t, nil
}
