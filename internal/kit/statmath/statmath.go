// Package statmath estimates quantities from observations, with intervals and tests: for
// reports, for comparisons, and for plans that stop when they know enough.
//
// Which function to use:
//
//   - A share, such as how often something happened: Share. The difference between two
//     groups: ShareDifference; on the same deals: PairedShareDifference.
//   - A mean: Mean.
//   - Several observations from one episode are not independent. Average them, or, if
//     episodes have different numbers of them: Clusters.
//   - Did A do better than B? On the same deals: PairedDifference for how much,
//     Permutation.SignFlip for whether, McNemar for whether if the score is 0 or 1. On
//     different deals: MeanDifference, Welch and Fisher, and Among for a single one.
//   - Several factors vary at once, such as prompt and model: Design, whose contrasts are main
//     effects and interactions.
//   - Several tests at once: Adjust, with Holm's method if one false claim is too many, with that of Benjamini and
//     Hochberg if a share of false claims is acceptable.
//   - How large is a difference, in standard deviations? Hedges, PairedEffect, CohenH.
//   - How many more episodes would show it? MeansNeeded, PairedNeeded, SharesNeeded.
//   - Who is stronger, from games between two: Rate.
//   - How far do raters agree? Kappa for two, with a closed formula; RaterKappa and Alpha for ratings that come in
//     clusters. Do two numbers go together? Spearman, Unrelated.
//
// Every function is pure; random draws come from a seed. Observations are added in the order
// they are given, so that the same episodes give the same digits. Nothing panics. If too little
// is known, or an observation is not finite, the result is unknown.
package statmath

import (
	"math"

	"parley/stats"
)

// The types of the public package stats.
type (
	// Interval is the interval of the public package.
	Interval = stats.Interval
	// Quantity is the quantity of the public package.
	Quantity = stats.Quantity
	// Test is the result of a test of the public package.
	Test = stats.Test
)

// Unknown returns a quantity without a value, from n observations.
func Unknown(n int, method string) Quantity { return stats.Unknown(n, method) }

func unbounded() Interval { return stats.Everything() }

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
