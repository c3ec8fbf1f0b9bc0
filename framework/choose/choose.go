// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package choose decides which entry of a view answers which TLS hello.
//
// [New] takes the entries of one view and returns a [Chooser], whose Select is
// all of a key manager but the keys: names, validity, usage, what the peer can
// verify, algorithm constraints, ranking, and the log that explains them. It
// chooses as the JDK's PKIX key manager does, with the differences that the
// documentation lists. [NewUnchecked] chooses as its SunX509 key manager up to
// JDK 25, which looks at no certificate.
//
// The package knows no keystore and no transport. A key manager whose keys
// live elsewhere makes entries of them and chooses by this package like the
// tiers that come with it.
package choose

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// Chooser chooses among the entries of one view. It is safe for concurrent
// use, never changes, and remembers verdicts as long as the clock lets them
// hold. Once a day it repeats its warnings, when a hello comes.
type Chooser struct {
	generation    uint64
	candidates    []*candidate // by builder, then as given
	constraints   *Constraints
	mode          mode
	defaultAlias  string
	expiryWarning time.Duration
	intermediates map[string]bool // subjects of those that some chain has
	now           func() time.Time
	log           *zap.Logger

	instants []time.Time  // at which a verdict may change, ascending
	reminder atomic.Int64 // when to warn again, Unix nanoseconds
	building sync.Mutex   // held while a table is made
	tables   [2]atomic.Pointer[table]
}

// mode says whose rules a choice follows.
type mode uint8

const (
	ours      mode = iota
	jdkPKIX        // the JDK's, by Options.JDKCompat
	unchecked      // those of its SunX509
)

// New returns a Chooser over the entries of the view with that generation. It
// looks at every certificate once, so that Select need not. The entries'
// chains and keys must not change afterwards.
//
// Of env it obeys Options.Constraints, DefaultAlias, Aliases, ExpiryWarning and
// JDKCompat, Log and Now.
// An alias of the options that no usable entry has, constraints that don't
// parse and a view without a usable entry are errors.
func New(generation uint64, entries []keymanager.Entry, env keymanager.Env) (*Chooser, error) {
	m := ours
	if env.Options.JDKCompat {
		m = jdkPKIX
	}
	c, err := newChooser(generation, entries, env, m)
	if err != nil {
		return nil, err
	}
	c.defaultAlias = env.Options.DefaultAlias
	if err := c.demand("default alias", c.defaultAlias); err != nil {
		return nil, err
	}
	c.remind(c.now())
	return c, nil
}

// NewUnchecked returns a Chooser that looks at keys and not at certificates:
// it takes the key type that comes first in the peer's list, and of that type
// the first entry that the peer can verify signatures of. Of certificates only
// the issuers count, and only where a server names those that it accepts.
//
// Of env it obeys Options.Aliases, ExpiryWarning and what Options.Constraints say of handshake
// signatures and curves, Log and Now.
func NewUnchecked(generation uint64, entries []keymanager.Entry, env keymanager.Env) (*Chooser, error) {
	c, err := newChooser(generation, entries, env, unchecked)
	if err != nil {
		return nil, err
	}
	c.remind(c.now())
	if !firstView(generation, env) {
		return c, nil
	}
	if env.Options.DefaultAlias != "" {
		c.log.Warn(msgInert, zap.String(logging.FieldReason, "default_alias: server names are not looked at"))
	}
	if env.Options.JDKCompat {
		c.log.Warn(msgInert, zap.String(logging.FieldReason, "jdk_compat: it is about the JDK's PKIX key manager; take pkix or pkixcached for it"))
	}
	return c, nil
}

func newChooser(generation uint64, entries []keymanager.Entry, env keymanager.Env, m mode) (*Chooser, error) {
	constraints, err := ParseConstraints(env.Options.Constraints, m == jdkPKIX)
	if err != nil {
		return nil, err
	}
	c := &Chooser{
		generation: generation, constraints: constraints, mode: m,
		now: env.Time, log: env.Logger(),
		expiryWarning: cmp.Or(env.Options.ExpiryWarning, defaultExpiryWarning),
	}
	c.inspect(entries)
	c.intermediates = intermediatesOf(c.candidates)
	if firstView(generation, env) {
		for _, w := range constraints.Warnings() {
			c.log.Warn(msgInert, zap.String(logging.FieldReason, w))
		}
	}
	if !slices.ContainsFunc(c.candidates, func(c *candidate) bool { return c.unusable == nil }) {
		return nil, c.noneUsable()
	}
	for _, alias := range env.Options.Aliases {
		if err := c.demand("alias", alias); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// firstView tells the view that a key manager opens with from those that come
// after it, for what an operator is to be told once.
func firstView(generation uint64, env keymanager.Env) bool {
	return generation <= max(env.FirstGeneration, 1)
}

// inspect makes candidates of entries.
func (c *Chooser) inspect(entries []keymanager.Entry) {
	c.instants = c.constraints.Dates()
	groups := map[string]int{}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b keymanager.Entry) int { return a.Builder - b.Builder })
	for i, e := range entries {
		cand := newCandidate(e, c.mode)
		cand.position = i
		c.candidates = append(c.candidates, cand)
		if cand.unusable != nil {
			c.logUnusable(cand)
			continue
		}
		for _, role := range roles() {
			cand.group[roleIndex(role)] = number(groups, cand.alike(role))
		}
		if c.mode != unchecked {
			c.instants = append(c.instants, cand.leaf.NotBefore, cand.expires)
		}
	}
	slices.SortFunc(c.instants, time.Time.Compare)
	c.instants = slices.CompactFunc(c.instants, time.Time.Equal)
}

// number returns the number of s, a new one where s is new.
func number(numbers map[string]int, s string) int {
	n, ok := numbers[s]
	if !ok {
		n = len(numbers)
		numbers[s] = n
	}
	return n
}

// demand returns nil if alias is empty or names a usable entry.
func (c *Chooser) demand(what, alias string) error {
	if alias == "" {
		return nil
	}
	var unusable error
	var aliases []string
	for _, cand := range c.candidates {
		if cand.unusable == nil {
			aliases = append(aliases, fmt.Sprintf("%q", cand.Alias))
		}
		if !strings.EqualFold(cand.Alias, alias) {
			continue
		}
		if cand.unusable == nil {
			return nil
		}
		unusable = cand.unusable
	}
	if unusable != nil {
		return fmt.Errorf("%s %q can't be served: %w", what, alias, unusable)
	}
	return fmt.Errorf("%s %q: no such entry; there are %s", what, alias, strings.Join(aliases, ", "))
}

func (c *Chooser) noneUsable() error {
	var reasons []string
	for _, cand := range c.candidates {
		reasons = append(reasons, fmt.Sprintf("%q in keystore %d: %v", cand.Alias, cand.Builder, cand.unusable))
	}
	if len(reasons) == 0 {
		return errors.New("no usable key entry: there is no entry at all")
	}
	return fmt.Errorf("no usable key entry: %s", strings.Join(reasons, "; "))
}

// denies returns nil or the algorithm constraint that c's chain breaks.
func (c *Chooser) denies(cand *candidate, role keymanager.Role, now time.Time) error {
	if c.mode == unchecked {
		return c.constraints.curve(cand.key.group) // which the JDK's TLS layer looks at
	}
	if cand.barred != nil {
		return cand.barred
	}
	return c.constraints.Chain(cand.chain.parsed, role, now)
}
