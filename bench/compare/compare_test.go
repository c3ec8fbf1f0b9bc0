// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"slices"
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

func TestRatiosAreOfOneRound(t *testing.T) {
	var turns []string
	// The machine is ten times slower in the second round.
	rows, err := Run(t.Context(), 3, []Contender{
		contender("a", &turns, 100, 1000, 100),
		contender("b", &turns, 150, 1500, 150),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(turns, strings.Split("abbaab", "")) {
		t.Errorf("turns %v", turns)
	}
	if r := rows[1]; r.Ratio != (Spread{1.5, 1.5, 1.5}) || r.CPU != 150 {
		t.Errorf("b: %+v", r)
	}
	if r := rows[0].Ratio.Median; r != 1 {
		t.Errorf("a compares with itself by %v", r)
	}
}

func TestMedianOfEvenNumber(t *testing.T) {
	var turns []string
	rows, err := Run(t.Context(), 2, []Contender{
		contender("a", &turns, 100, 100),
		contender("b", &turns, 110, 130),
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := rows[1]; r.CPU != 120 || r.Ratio.Median < 1.199 || r.Ratio.Median > 1.201 {
		t.Errorf("b: %+v", r)
	}
}

func TestFailedTurnEndsTheRun(t *testing.T) {
	cause := errors.New("no server")
	_, err := Run(t.Context(), 3, []Contender{{Name: "a", Measure: func(context.Context) (Sample, error) { return Sample{}, cause }}})
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "measure a") {
		t.Errorf("got %v", err)
	}
}
