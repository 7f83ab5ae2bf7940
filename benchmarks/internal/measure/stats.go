// Package measure times the same work done by several, in rounds, so that what
// disturbs the machine disturbs all of them alike.
package measure

import (
	"math"
	"slices"
)

// Median returns the median of xs; of none it is NaN.
func Median(xs []float64) float64 { return quantile(xs, 0.5) }

// Spread returns half of the distance between the quartiles, as a share of the
// median. Half of all rounds lie about within median ± spread.
func Spread(xs []float64) float64 {
	return (quantile(xs, 0.75) - quantile(xs, 0.25)) / 2 / Median(xs)
}

// quantile interpolates between the two nearest.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	xs = slices.Sorted(slices.Values(xs))
	at := q * float64(len(xs)-1)
	low := int(at)
	high := min(low+1, len(xs)-1)
	return xs[low] + (xs[high]-xs[low])*(at-float64(low))
}

// Ratios returns a[i]/b[i] for each round.
func Ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}
