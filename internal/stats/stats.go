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
	"encoding/json"
	"fmt"
	"math"
)

// Interval is a range that holds the true value with the confidence asked for. An end
// nothing is known about is infinite, which JSON writes as null.
type Interval struct {
	Low, High float64
}

// Half returns half of the interval's width: the number after ±.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// Holds says whether x is within the interval, ends included. Where the interval of a
// difference holds 0, it cannot be told which side is ahead.
func (i Interval) Holds(x float64) bool { return i.Low <= x && x <= i.High }

// MarshalJSON writes {"low": …, "high": …}.
func (i Interval) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Low  *float64 `json:"low"`
		High *float64 `json:"high"`
	}{finite(i.Low), finite(i.High)})
}

func finite(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	return &x
}

// Quantity is a number with its interval: what every function here comes to, so that
// all can be shown in one way.
type Quantity struct {
	Value    float64 // NaN where it is not known
	Interval         // all that it could be where it is not known
	N        int     // how many independent observations it rests on: episodes, pairs, clusters
	Method   string  // what the interval is, in a word or two: "wilson", "t"
}

// Unknown is a quantity that n observations say nothing about.
func Unknown(n int, method string) Quantity {
	return Quantity{math.NaN(), everything(), n, method}
}

// Known says whether there is a value. Its interval may still be unbounded.
func (q Quantity) Known() bool { return !math.IsNaN(q.Value) }

// MarshalJSON writes {"value": …, "low": …, "high": …, "n": …, "method": …}, with null
// for what is not known. It is a reason not to embed a Quantity in a struct that is
// written as JSON: give it a name there.
func (q Quantity) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Value  *float64 `json:"value"`
		Low    *float64 `json:"low"`
		High   *float64 `json:"high"`
		N      int      `json:"n"`
		Method string   `json:"method"`
	}{finite(q.Value), finite(q.Low), finite(q.High), q.N, q.Method})
}

// String writes "0.62 (0.51 to 0.72, n=80, wilson)".
func (q Quantity) String() string {
	switch {
	case !q.Known():
		return fmt.Sprintf("unknown (n=%d, %s)", q.N, q.Method)
	case math.IsInf(q.Low, -1) && math.IsInf(q.High, 1):
		return fmt.Sprintf("%.4g (interval unknown, n=%d, %s)", q.Value, q.N, q.Method)
	}
	return fmt.Sprintf("%.4g (%.4g to %.4g, n=%d, %s)", q.Value, q.Low, q.High, q.N, q.Method)
}

// Test is what a test of "there is no difference" came to.
type Test struct {
	P      float64 // how often chance alone does as much; NaN where it is not known
	N      int     // how many independent observations it rests on
	Method string
}

// Known says whether there is a P.
func (t Test) Known() bool { return !math.IsNaN(t.P) }

// MarshalJSON writes {"p": …, "n": …, "method": …}, with null for a P that is not known.
func (t Test) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		P      *float64 `json:"p"`
		N      int      `json:"n"`
		Method string   `json:"method"`
	}{finite(t.P), t.N, t.Method})
}

// String writes "p=0.013 (sign flips, n=12)".
func (t Test) String() string {
	if !t.Known() {
		return fmt.Sprintf("p unknown (%s, n=%d)", t.Method, t.N)
	}
	return fmt.Sprintf("p=%.3g (%s, n=%d)", t.P, t.Method, t.N)
}

func everything() Interval { return Interval{math.Inf(-1), math.Inf(1)} }

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

func allFinite(xs []float64) bool {
	for _, x := range xs {
		if !isFinite(x) {
			return false
		}
	}
	return true
}
