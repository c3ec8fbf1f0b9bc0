// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// openProven opens and proves the keystore whose files have been read, and
// refuses one that is of no use. known is a reading whose proofs hold, or nil.
func openProven(ctx context.Context, src keymanager.Source, files []file, known *Store, o keymanager.Options, opt ViewOptions) (*Store, error) {
	s, err := openFiles(ctx, src, files, Limits{Iterations: o.Iterations})
	if err == nil {
		err = s.Prove(ctx, ProveOptions{Keep: opt.KeepKeys, Load: opt.Load, known: known})
	}
	if err == nil {
		err = s.judge(opt.Strict)
	}
	if err != nil {
		return nil, fmt.Errorf("open keystore %q: %w", src.Name(), err)
	}
	return s, nil
}

// judge returns nil if the store can serve.
func (s *Store) judge(strict bool) error {
	usable := 0
	var reasons []string
	for _, e := range s.Entries {
		switch {
		case e.Usable:
			usable++
		case e.Kind == keymanager.KindTrusted:
		case strict && e.Broken:
			return fmt.Errorf("key %q: %w", e.Alias, e.Err)
		default:
			reasons = append(reasons, fmt.Sprintf("%q: %s", e.Alias, e.Reason))
		}
	}
	if usable > 0 {
		return nil
	}
	if len(reasons) > maxNames {
		reasons = append(reasons[:maxNames], fmt.Sprintf("and %d more", len(reasons)-maxNames))
	}
	if len(reasons) == 1 {
		// One key that is broken: its error is what the caller can act on.
		for _, e := range s.Entries {
			if e.Broken {
				return fmt.Errorf("key %q: %w", e.Alias, e.Err)
			}
		}
	}
	none := &NoKeyError{Entries: reasons}
	if s.Format == PEM && len(s.src.Paths) == 1 {
		none.Hint = "certificate and key in two files are given as one: --keystore CERT,KEY"
	}
	return none
}

// checkAliases returns nil if each alias that the options name is usable in one
// of the stores at least.
func checkAliases(stores []*Store, o keymanager.Options) error {
	demanded := slices.Clone(o.Aliases)
	if o.DefaultAlias != "" {
		demanded = append(demanded, o.DefaultAlias)
	}
	for _, alias := range demanded {
		if err := checkAlias(stores, alias); err != nil {
			return err
		}
	}
	return nil
}

func checkAlias(stores []*Store, alias string) error {
	missing := &AliasError{Alias: alias}
	for _, s := range stores {
		for _, e := range s.Entries {
			switch named := strings.EqualFold(e.Alias, alias); {
			case named && e.Usable:
				return nil
			case named:
				missing.Reason = e.Reason
			case e.Usable:
				missing.Known = append(missing.Known, e.Alias)
			}
		}
	}
	return missing
}

// compare returns nil if next may take the place of old: each key of old that is in
// it is usable still, and it has the demanded aliases that old has. A key without
// its certificate may be one whose certificate is still to come. A key that is gone
// is gone.
func compare(old, next *Store, demanded []string) error {
	for _, e := range next.Entries {
		if before := old.Find(e.Alias); e.Kind == keymanager.KindKey && !e.Usable && before != nil && before.Usable {
			return fmt.Errorf("key %q, good in the reading in use: %w", e.Alias, e.Err)
		}
	}
	for _, alias := range demanded {
		if before := old.Find(alias); before != nil && before.Usable {
			if err := checkAlias([]*Store{next}, alias); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameVerdicts reports whether two readings of the same content say the same.
func (s *Store) sameVerdicts(old *Store) bool {
	return s.Digest == old.Digest && slices.EqualFunc(s.Entries, old.Entries, func(a, b *Entry) bool {
		return a.Alias == b.Alias && a.Usable == b.Usable && a.Reason == b.Reason && slices.EqualFunc(a.Chain, b.Chain, bytes.Equal)
	})
}
