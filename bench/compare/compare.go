// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package compare measures contenders against a reference on a machine that is
// not quiet: in short turns, with one of the reference before and after each of
// another's, so that what slows one slows its neighbours too. What counts is the
// median of the ratios between neighbours.
package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Sample is what one turn showed. CPU times are per handshake.
type Sample struct {
	CPU      time.Duration // of all processes of the contender together
	Helpers  time.Duration // the part of it that isn't the first process's
	Rate     float64       // handshakes per second; 0: not measured
	P50, P99 time.Duration // latencies; 0: not measured
}

// Contender is one that takes turns. Measure is called once for each.
type Contender struct {
	Name    string
	Measure func(context.Context) (Sample, error)
}

// Row is what all rounds showed of a contender: medians, and how the reference's
// turns before and after its own compare, of which the mean counts.
type Row struct {
	Name string
	Sample
	Ratio     Spread // of CPU to the reference's
	RateRatio Spread // of Rate to the reference's
}

// Spread is a median, where it lies with 95 % confidence as far as so many rounds
// can tell, and how many there were.
type Spread struct {
	Low, Median, High float64
	Rounds            int
}

// Run lets everybody have a turn in each of several rounds. The first contender
// is the reference, which has one before and after each other one's. Every other
// round goes backwards, so that nobody always follows the same neighbour. A round
// to warm up comes before them and doesn't count.
func Run(ctx context.Context, rounds int, all []Contender) ([]Row, error) {
	own, beside := make([][]Sample, len(all)), make([][]Sample, len(all))
	take := func(i int) (s Sample, err error) {
		if s, err = all[i].Measure(ctx); err != nil {
			return s, fmt.Errorf("measure %s: %w", all[i].Name, err)
		}
		own[i] = append(own[i], s)
		return s, nil
	}
	for _, c := range all {
		if _, err := c.Measure(ctx); err != nil {
			return nil, fmt.Errorf("warm up %s: %w", c.Name, err)
		}
	}
	for round := range rounds {
		before, err := take(0)
		if err != nil {
			return nil, err
		}
		for turn := 1; turn < len(all); turn++ {
			i := turn
			if round%2 == 1 {
				i = len(all) - turn
			}
			if _, err := take(i); err != nil {
				return nil, err
			}
			after, err := take(0)
			if err != nil {
				return nil, err
			}
			beside[i] = append(beside[i], mean(before, after))
			before = after
		}
	}
	beside[0] = own[0]
	rows := make([]Row, len(all))
	for i, c := range all {
		rows[i] = row(c.Name, own[i], beside[i])
	}
	return rows, nil
}

// mean is of what contenders are compared by.
func mean(a, b Sample) Sample {
	return Sample{CPU: (a.CPU + b.CPU) / 2, Rate: (a.Rate + b.Rate) / 2}
}

func row(name string, own, reference []Sample) Row {
	return Row{
		Name: name,
		Sample: Sample{
			CPU:     medianOf(own, func(s Sample) time.Duration { return s.CPU }),
			Helpers: medianOf(own, func(s Sample) time.Duration { return s.Helpers }),
			Rate:    medianOf(own, func(s Sample) float64 { return s.Rate }),
			P50:     medianOf(own, func(s Sample) time.Duration { return s.P50 }),
			P99:     medianOf(own, func(s Sample) time.Duration { return s.P99 }),
		},
		Ratio:     spread(own, reference, func(s Sample) float64 { return float64(s.CPU) }),
		RateRatio: spread(own, reference, func(s Sample) float64 { return s.Rate }),
	}
}

func spread(own, reference []Sample, of func(Sample) float64) Spread {
	ratios := make([]float64, 0, len(own))
	for i := range own {
		if r := of(reference[i]); r > 0 {
			ratios = append(ratios, of(own[i])/r)
		}
	}
	if len(ratios) == 0 {
		return Spread{}
	}
	slices.Sort(ratios)
	low, high := confident(len(ratios))
	return Spread{Low: ratios[low], Median: median(ratios), High: ratios[high], Rounds: len(ratios)}
}

// confident returns which two of n sorted values the true median lies between,
// with 95 % confidence, whatever the values' distribution is: each is below it or
// above with even odds. Of less than six values it is the first and the last.
func confident(n int) (low, high int) {
	const doubt = 0.05 / 2               // on either side
	exactly := math.Pow(0.5, float64(n)) // probability that so many are below
	for atMost := exactly; ; low++ {
		exactly *= float64(n-low) / float64(low+1)
		if atMost += exactly; atMost > doubt {
			return low, n - 1 - low
		}
	}
}

func medianOf[T time.Duration | float64](samples []Sample, of func(Sample) T) T {
	values := make([]T, 0, len(samples))
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return median(values)
}

// median returns the middle of what is sorted, or the mean of the two there.
func median[T time.Duration | float64](sorted []T) T {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
