// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package compare measures contenders against a reference on a machine that is
// not quiet: in short rounds, in each of which everybody has a turn, so that
// what slows one slows its neighbour too. What counts is the median of the
// rounds' ratios.
package compare

import (
	"context"
	"fmt"
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

// Contender is one that takes turns. Measure is called once a round.
type Contender struct {
	Name    string
	Measure func(context.Context) (Sample, error)
}

// Row is what all rounds showed of a contender: medians, and how the reference's
// turn of the same round compares.
type Row struct {
	Name string
	Sample
	Ratio     Spread // of CPU to the reference's
	RateRatio Spread // of Rate to the reference's
}

// Spread is a median and the quartiles around it.
type Spread struct{ Low, Median, High float64 }

// Run lets everybody have a turn in each of several rounds. The first contender
// is the reference. Every other round goes backwards, so that nobody always
// follows the same neighbour.
func Run(ctx context.Context, rounds int, all []Contender) ([]Row, error) {
	samples := make([][]Sample, len(all))
	for round := range rounds {
		for turn := range all {
			i := turn
			if round%2 == 1 {
				i = len(all) - 1 - turn
			}
			s, err := all[i].Measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", all[i].Name, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	rows := make([]Row, len(all))
	for i, c := range all {
		rows[i] = row(c.Name, samples[i], samples[0])
	}
	return rows, nil
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
	at := func(q float64) float64 { return ratios[int(q*float64(len(ratios)-1)+0.5)] }
	return Spread{Low: at(0.25), Median: median(ratios), High: at(0.75)}
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
