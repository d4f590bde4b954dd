// Package stats turns observations into numbers that say how sure they are: for
// reports, for comparisons, and for plans that stop when they know enough.
//
// Which function to use:
//
//   - A share, as how often something happened: Share. Its difference between two
//     groups: ShareDifference; on the same deals: PairedShareDifference.
//   - A mean: Mean. Observations one by one, in little memory: Tally. Skewed, or not a
//     mean at all: Bootstrap.
//   - Several observations from one episode are not independent. Average them, or, where
//     episodes have different numbers of them: Clusters.
//   - A median or another quantile: Quantile.
//   - Did A do better than B? On the same deals: PairedDifference for how much,
//     Permutation.SignFlip for whether, McNemar for whether where the score is 0 or 1. On
//     different deals: MeanDifference, Welch or Permutation.Shuffle, and Fisher.
//   - Several things vary at once, such as prompt and model: Design, whose contrasts are main
//     effects and interactions.
//   - Several of these at once: Holm where one false claim is too many, BenjaminiHochberg
//     where a share of false ones may stand.
//
// How large a difference is, and how many episodes would show it, is in stats/effect;
// who is stronger, from games between two, in stats/rating.
//
// What it promises: every function is pure, and what draws at random draws from a seed;
// observations are folded in the order they are given, so that the same episodes give
// the same digits; nothing panics, and where too little is known, or an observation is
// not a finite number, the answer says so and is never a number made up.
//
// It is not for reading journals or for drawing: it knows numbers only.
package stats

import (
	"math"

	values "parley/stats"
)

// Interval is the public package's.
type Interval = values.Interval

// Quantity is the public package's.
type Quantity = values.Quantity

// Test is the public package's.
type Test = values.Test

// Unknown is a quantity that n observations say nothing about.
func Unknown(n int, method string) Quantity { return values.Unknown(n, method) }

func everything() Interval { return values.Everything() }

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

func allFinite(xs []float64) bool {
	for _, x := range xs {
		if !isFinite(x) {
			return false
		}
	}
	return true
}
