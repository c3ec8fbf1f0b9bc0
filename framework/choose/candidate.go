// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"cmp"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// candidate is an entry with all that a choice needs to know of it and that
// depends on the entry alone. It is immutable but for warned.
type candidate struct {
	keymanager.Entry
	position int    // among all entries, by builder and then as stored
	unusable error  // why no hello can have it; nil: it can be used
	group    [2]int // by index of role: equal for candidates that are alike

	leaf    *x509.Certificate
	key     keyTraits // schemes: those of the key that the entry allows
	chain   chainTraits
	names   hostNames
	usage   [2]error // by index of role
	expires time.Time

	mode     mode
	patterns []string // jdkPKIX only: the names as the JDK compares them
	barred   error    // jdkPKIX only: why the JDK never lets the chain through

	warned [numClasses]atomic.Bool // a last resort is told of once for each class
}

// roleIndex is the index of a valid role in arrays.
func roleIndex(r keymanager.Role) int { return int(r - keymanager.RoleServer) }

// newCandidate looks at an entry once.
func newCandidate(e keymanager.Entry, m mode) *candidate {
	c := &candidate{Entry: e, mode: m}
	if c.unusable = c.inspect(); c.unusable != nil {
		return c
	}
	c.expires = c.leaf.NotAfter.Add(1) // which still belongs to the validity (RFC 5280, 4.1.2.5)
	if m == unchecked {
		c.chain.signatures = nil
		return c
	}
	c.names = namesOf(c.leaf)
	if m == jdkPKIX {
		c.asJDK()
	}
	for _, role := range roles() {
		c.usage[roleIndex(role)] = checkUsage(c.leaf, role, m)
	}
	return c
}

func roles() []keymanager.Role {
	return []keymanager.Role{keymanager.RoleServer, keymanager.RoleClient}
}

// inspect reads key and chain, or says why no hello can have the entry.
func (c *candidate) inspect() (err error) {
	switch {
	case c.Kind != "" && c.Kind != keymanager.KindKey:
		return fmt.Errorf("a %s entry has no private key", c.Kind)
	case !c.Usable:
		return errors.New(cmp.Or(c.Reason, "not usable, without a reason"))
	case c.Key == nil || len(c.Chain) == 0:
		return errors.New("there is no key or no certificate")
	}
	if c.leaf, err = x509.ParseCertificate(c.Chain[0]); err != nil {
		return fmt.Errorf("certificate can't be parsed: %w", err)
	}
	if !samePublicKey(c.Key.Public(), c.leaf.PublicKey) {
		return errors.New("key does not match the certificate")
	}
	if c.key, err = traitsOf(c.leaf.PublicKey); err != nil {
		return err
	}
	if c.Schemes != nil {
		allowed := setOfAll(c.Schemes)
		c.key.tls12, c.key.tls13 = c.key.tls12&allowed, c.key.tls13&allowed
	}
	c.chain, err = traitsOfChain(c.leaf, c.Chain, c.mode)
	return err
}

func samePublicKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// alike is equal for candidates of which a hello can only prefer the earlier:
// they differ in nothing that it looks at but names, dates, constraints and
// aliases.
func (c *candidate) alike(role keymanager.Role) string {
	k := fmt.Sprintf("%x %x %x %v", c.key.family, c.key.tls12, c.key.tls13, c.key.group)
	for _, s := range c.chain.signatures {
		k += fmt.Sprintf(" %x", s.schemes)
	}
	if role == keymanager.RoleClient {
		k += fmt.Sprintf("%q", c.chain.issuers)
	}
	return k
}

// standing is a candidate at one time in one role, as good as it can be: the
// server name is yet to be looked at.
func (c *candidate) standing(role keymanager.Role, now time.Time) standing {
	s := standing{candidate: c}
	switch {
	case c.usage[roleIndex(role)] != nil:
		s.class = WrongUsage
	case c.mode == unchecked:
	case now.Before(c.leaf.NotBefore):
		s.class = NotYetValid
	case !now.Before(c.expires):
		s.class = Expired
	}
	return s
}
