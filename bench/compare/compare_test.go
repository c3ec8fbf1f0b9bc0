// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// contender costs what the list says, turn by turn, and notes its turns.
func contender(name string, turns *[]string, costs ...time.Duration) Contender {
	return Contender{Name: name, Measure: func(context.Context) (Sample, error) {
		*turns = append(*turns, name)
		cost := costs[0]
		costs = costs[1:]
		return Sample{CPU: cost, Rate: 1 / cost.Seconds()}, nil
	}}
}

func TestRatiosAreOfNeighbours(t *testing.T) {
	var turns []string
	// What warms up doesn't count. The machine gets slower and slower, and is
	// ten times slower in the second round.
	rows, err := Run(t.Context(), 2, []Contender{
		contender("a", &turns, 7, 100, 120, 140, 1000, 1200, 1400),
		contender("b", &turns, 7, 165, 1950),
		contender("c", &turns, 7, 130, 1100),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, ""); got != "abc"+"abaca"+"acaba" {
		t.Errorf("turns %v", got)
	}
	if r := rows[1]; r.Ratio != (Spread{1.5, 1.5, 1.5, 2}) || r.CPU != (165+1950)/2 {
		t.Errorf("b: %+v", r)
	}
	if r := rows[2].Ratio; r != (Spread{1, 1, 1, 2}) {
		t.Errorf("c: %+v", r)
	}
	if r := rows[0]; r.Ratio != (Spread{1, 1, 1, 6}) || r.CPU != 570 {
		t.Errorf("a: %+v", r)
	}
}

func TestMedianOfEvenNumber(t *testing.T) {
	var turns []string
	rows, err := Run(t.Context(), 2, []Contender{
		contender("a", &turns, 7, 100, 100, 100, 100),
		contender("b", &turns, 7, 110, 130),
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := rows[1]; r.CPU != 120 || r.Ratio.Median < 1.199 || r.Ratio.Median > 1.201 {
		t.Errorf("b: %+v", r)
	}
}

func TestReferenceAlone(t *testing.T) {
	var turns []string
	rows, err := Run(t.Context(), 2, []Contender{contender("a", &turns, 7, 100, 300)})
	if err != nil || len(rows) != 1 || rows[0].CPU != 200 || len(turns) != 3 {
		t.Errorf("got %+v, %v after turns %v", rows, err, turns)
	}
}

func TestFailedTurnEndsTheRun(t *testing.T) {
	cause := errors.New("no server")
	_, err := Run(t.Context(), 3, []Contender{{Name: "a", Measure: func(context.Context) (Sample, error) { return Sample{}, cause }}})
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "warm up a") {
		t.Errorf("got %v", err)
	}
}

// TestConfidence: the ranks, counted from 0, that tables of the sign test have.
func TestConfidence(t *testing.T) {
	for n, low := range map[int]int{1: 0, 2: 0, 5: 0, 6: 0, 8: 0, 9: 1, 10: 1, 20: 5, 30: 9, 60: 21, 100: 39} {
		if l, h := confident(n); l != low || h != n-1-low {
			t.Errorf("of %d values: %d to %d, want %d to %d", n, l, h, low, n-1-low)
		}
	}
}
