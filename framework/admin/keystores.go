// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// listTimeout is what the key process may take to list its entries.
const listTimeout = 5 * time.Second

// listing is the answer of /keystores. Entries have the form of tlsd keystore
// list --json, without the type of the key.
type listing struct {
	Tier       string  `json:"tier"`
	Generation uint64  `json:"generation"`
	Entries    []entry `json:"entries"`
}

type entry struct {
	Builder   int        `json:"builder_index"`
	Alias     string     `json:"alias"`
	Kind      string     `json:"kind"`
	Names     []string   `json:"names"`
	NotBefore *time.Time `json:"not_before"`
	NotAfter  *time.Time `json:"not_after"`
	Usable    bool       `json:"usable"`
	Reason    string     `json:"reason"`
}

func (a *Admin) keystores(w http.ResponseWriter, r *http.Request) {
	server := a.present(w)
	if server == nil {
		return
	}
	keys := server.Keys()
	ctx, cancel := context.WithTimeout(r.Context(), listTimeout)
	defer cancel()
	out := listing{Tier: keys.Tier(), Generation: keys.Generation(), Entries: []entry{}}
	entries, err := keys.List(ctx)
	if err != nil {
		say(w, http.StatusServiceUnavailable, "the key process does not list its entries: "+err.Error())
		return
	}
	for i := range entries {
		out.Entries = append(out.Entries, describe(&entries[i]))
	}
	tell(w, out)
}

func describe(e *keymanager.Entry) entry {
	out := entry{Builder: e.Builder, Alias: e.Alias, Kind: e.Kind, Names: []string{}, Usable: e.Usable, Reason: e.Reason}
	if len(e.Chain) == 0 {
		return out
	}
	leaf, err := x509.ParseCertificate(e.Chain[0])
	if err != nil {
		return out // it is not usable, and Reason says so
	}
	out.NotBefore, out.NotAfter = &leaf.NotBefore, &leaf.NotAfter
	out.Names = namesOf(leaf)
	return out
}

// namesOf returns the names that leaf is chosen for: the common name is one where
// there is no host name besides.
func namesOf(leaf *x509.Certificate) []string {
	names := append([]string{}, leaf.DNSNames...)
	if len(names) == 0 && leaf.Subject.CommonName != "" {
		names = append(names, leaf.Subject.CommonName)
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
