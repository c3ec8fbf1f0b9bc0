// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

const (
	msgWarning    = "keystore warning" // of a keystore as a whole
	msgIncomplete = "chain incomplete" // as framework/choose has it
)

// entriesOf returns the entries of a view.
func entriesOf(stores []*Store, keep bool) []keymanager.Entry {
	var out []keymanager.Entry
	for i, s := range stores {
		for _, e := range s.Entries {
			entry := keymanager.Entry{Builder: i, Alias: e.Alias, Kind: e.Kind, Chain: e.Chain, Usable: e.Usable, Reason: e.Reason}
			switch {
			case !e.Usable:
			case keep:
				entry.Key = e.kept.Key
			default:
				entry.Key = onDemand{e}
			}
			out = append(out, entry)
		}
	}
	return out
}

// onDemand is a key that is decrypted for each signature and wiped after it.
type onDemand struct{ entry *Entry }

func (k onDemand) Public() crypto.PublicKey { return k.entry.public }

// Sign looks at the request before it touches the key.
func (k onDemand) Sign(ctx context.Context, req *keymanager.SignRequest) ([]byte, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	signer, err := k.entry.Signer(ctx)
	if err != nil {
		return nil, fmt.Errorf("decrypt key %q of keystore %q: %w", k.entry.Alias, k.entry.store.src.Name(), err)
	}
	defer Wipe(signer)
	return keymanager.FromSigner(signer).Sign(ctx, req)
}

// logStore writes a line for each key of a reading that has come into use, and
// what an operator should know of it.
func logStore(log *zap.Logger, builder int, generation uint64, s *Store) {
	path, root := zap.String(logging.FieldKeystore, s.src.Name()), s.root()
	for _, text := range s.Warnings {
		logging.LogKey(log, zap.WarnLevel, msgWarning, logging.KeyEvent{Builder: builder, Generation: generation, Reason: text}, path)
	}
	for _, e := range s.Entries {
		event := logging.KeyEvent{Builder: builder, Alias: e.Alias, Generation: generation, Reason: e.Reason}
		switch {
		case e.Usable:
			event.Reason = strings.Join(e.Notes, "; ")
			logging.LogKey(log, zap.InfoLevel, logging.MsgFoundKey, event, path, zap.String("key", e.KeyType))
			if event.Reason = e.gap(root); event.Reason != "" {
				logging.LogKey(log, zap.WarnLevel, msgIncomplete, event, path)
			}
		case e.Kind == keymanager.KindTrusted:
		case e.Broken:
			logging.LogKey(log, zap.ErrorLevel, logging.MsgNotUsable, event, path)
		default:
			logging.LogKey(log, zap.WarnLevel, logging.MsgNotUsable, event, path)
		}
	}
}
