// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// namedKey is a key that is told apart by its pointer.
type namedKey struct {
	keymanager.Key
	_ int
}

func keyID(n int) (id keymanager.KeyID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

func TestReplacedKeySignsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newKeyTable(1)
		stays, goes, late := &namedKey{}, &namedKey{}, &namedKey{}
		table.put(keyID(1), stays, 1)
		table.put(keyID(2), goes, 1)
		if !table.advance(2) || table.advance(2) {
			t.Error("a generation is not new exactly once")
		}
		renewed := &namedKey{}
		table.put(keyID(1), renewed, 2)
		time.Sleep(keyGrace / 2)
		table.put(keyID(3), late, 1) // chosen before the change, by a slow call
		time.Sleep(keyGrace/2 - time.Millisecond)

		for n, want := range map[int]keymanager.Key{1: renewed, 2: goes, 3: late} {
			if got, ok := table.lookup(keyID(n)); !ok || got != want {
				t.Errorf("within the grace, key %d is %p, %v; want %p", n, got, ok, want)
			}
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if _, ok := table.lookup(keyID(2)); ok {
			t.Error("the replaced key is still found")
		}
		if _, ok := table.lookup(keyID(3)); !ok {
			t.Error("the late key is gone before its time")
		}
		time.Sleep(keyGrace / 2)
		synctest.Wait()
		if len(table.keys) != 1 {
			t.Errorf("%d keys are referenced, want the one in use", len(table.keys))
		}
		if table.timer != nil {
			t.Error("a timer runs for nothing")
		}
	})
}

func TestKeyOfNewestGenerationStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newKeyTable(7)
		first, second := &namedKey{}, &namedKey{}
		table.put(keyID(1), first, 7)
		table.put(keyID(1), second, 7)
		time.Sleep(24 * time.Hour)
		if got, ok := table.lookup(keyID(1)); !ok || got != keymanager.Key(first) {
			t.Errorf("key is %p, %v; want the first, %p", got, ok, first)
		}
	})
}

// An answer may carry a generation before the table has been told of it.
func TestKeyMayComeBeforeItsGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newKeyTable(1)
		table.put(keyID(1), &namedKey{}, 2)
		table.advance(2)
		time.Sleep(2 * keyGrace)
		if _, ok := table.lookup(keyID(1)); !ok {
			t.Error("a key of the newest generation is gone")
		}
		table.clear()
	})
}

func TestKeyTableIsBounded(t *testing.T) {
	table := newKeyTable(1)
	for n := range maxKeys + 10 {
		table.put(keyID(n), &namedKey{}, 1)
	}
	if len(table.keys) != maxKeys {
		t.Errorf("%d keys, want %d", len(table.keys), maxKeys)
	}
	if _, ok := table.lookup(keyID(maxKeys + 9)); !ok {
		t.Error("the newest key is not held")
	}
}
