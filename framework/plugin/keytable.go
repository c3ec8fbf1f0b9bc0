// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

const (
	// keyGrace is how long a key of a replaced generation still signs: longer
	// than any handshake that selected it.
	keyGrace = 30 * time.Second
	// maxKeys bounds the table where a tier makes keys up as it goes. A key that
	// had to go is found again by List or selected again by the front.
	maxKeys = 1 << 16
)

// keyTable finds keys by id: those of the newest generation, and for keyGrace
// those of the ones before.
type keyTable struct {
	mu     sync.RWMutex // guards what follows
	newest uint64
	keys   map[keymanager.KeyID]heldKey
	timer  *time.Timer // drops what is over; nil: nothing will be
}

type heldKey struct {
	key        keymanager.Key
	generation uint64    // newest that is known to hold it
	until      time.Time // zero: as long as that generation is the newest
}

func newKeyTable(generation uint64) *keyTable {
	return &keyTable{newest: generation, keys: map[keymanager.KeyID]heldKey{}}
}

func (t *keyTable) lookup(id keymanager.KeyID) (keymanager.Key, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	k, ok := t.keys[id]
	return k.key, ok && (k.until.IsZero() || time.Now().Before(k.until))
}

// put holds a key of the given generation. A key that is held already with the
// same id stays, being the same key.
func (t *keyTable) put(id keymanager.KeyID, key keymanager.Key, generation uint64) {
	if t.has(id, generation) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, ok := t.keys[id]; ok && k.generation >= generation {
		return
	}
	if len(t.keys) >= maxKeys {
		t.dropAny()
	}
	k := heldKey{key: key, generation: generation}
	if generation < t.newest {
		k.until = time.Now().Add(keyGrace)
		t.dropLater(keyGrace)
	}
	t.keys[id] = k
}

func (t *keyTable) has(id keymanager.KeyID, generation uint64) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	k, ok := t.keys[id]
	return ok && k.generation >= generation
}

// advance makes generation the newest and reports whether it is. Keys that
// aren't put anew are dropped after keyGrace.
func (t *keyTable) advance(generation uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation <= t.newest {
		return false
	}
	t.newest = generation
	until := time.Now().Add(keyGrace)
	for id, k := range t.keys {
		if k.until.IsZero() && k.generation < generation {
			k.until = until
			t.keys[id] = k
		}
	}
	t.dropLater(keyGrace)
	return true
}

// clear drops all keys.
func (t *keyTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.keys)
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// dropLater has drop called once after d, if it isn't going to be called anyway.
// The caller holds t.mu.
func (t *keyTable) dropLater(d time.Duration) {
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.drop)
	}
}

// drop forgets the keys whose time is over.
func (t *keyTable) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	now := time.Now()
	var rest time.Duration
	for id, k := range t.keys {
		if k.until.IsZero() {
			continue
		}
		left := k.until.Sub(now)
		if left <= 0 {
			delete(t.keys, id)
		} else if rest == 0 || left < rest {
			rest = left
		}
	}
	if rest > 0 {
		t.dropLater(rest)
	}
}

// dropAny makes room for one key. The caller holds t.mu.
func (t *keyTable) dropAny() {
	for id := range t.keys {
		delete(t.keys, id)
		return
	}
}
