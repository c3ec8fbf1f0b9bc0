// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Each reading that a key process did by itself is told of once.
func TestReadingsAreToldOnce(t *testing.T) {
	change := func(generation uint64, cause, failed string) keymanager.Change {
		return keymanager.Change{Generation: generation, Cause: cause, Failed: failed}
	}
	for _, tt := range []struct {
		name    string
		changes []keymanager.Change
		want    []string
	}{
		{"start", []keymanager.Change{change(1, "start", "")}, nil},
		{"names_known_at_last", []keymanager.Change{change(1, "start", ""), change(1, "start", "")}, nil},
		{"changed", []keymanager.Change{change(1, "start", ""), change(2, "files changed", "")}, []string{"keystores <nil>"}},
		{"asked_for", []keymanager.Change{change(1, "start", ""), change(2, "reload", ""), change(2, "reload", "bad")}, nil},
		{"failed_and_mended", []keymanager.Change{change(1, "start", ""), change(1, "files changed", "bad"), change(1, "files changed", "")},
			[]string{"keystores bad", "keystores <nil>"}},
		{"two_failures", []keymanager.Change{change(1, "start", ""), change(1, "files changed", "a"), change(1, "files changed", "a, b")},
			[]string{"keystores a", "keystores a, b"}},
		{"other_keystore_meanwhile", []keymanager.Change{change(1, "start", ""), change(1, "files changed", "a"), change(2, "files changed", "a")},
			[]string{"keystores a"}},
		{"asked_for_and_mended", []keymanager.Change{change(1, "start", ""), change(1, "reload", "bad"), change(1, "files changed", "")},
			[]string{"keystores <nil>"}},
		{"failed_at_start", []keymanager.Change{change(5, "start", "bad")}, []string{"keystores bad"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			r := readings{told: func(what string, err error) { got = append(got, fmt.Sprint(what, " ", err)) }}
			for _, c := range tt.changes {
				r.take(c)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
