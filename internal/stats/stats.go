// Package stats turns observations into estimates with intervals: means and
// proportions, for reports and for plans that stop when they know enough.
//
// What it promises: every function is pure; observations are folded in the order they
// are given, so that the same episodes give the same digits; too few observations give
// an interval that says so, never an error or a NaN.
//
// It is not for reading journals or for drawing: it knows numbers only.
package stats

import (
	"encoding/json"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Interval is a range that holds the true value with the confidence asked for. An end
// nothing is known about is infinite, which JSON writes as null.
type Interval struct {
	Low, High float64
}

// Half returns half of the interval's width: the number after ±.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// MarshalJSON writes {"low": …, "high": …}.
func (i Interval) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Low  *float64 `json:"low"`
		High *float64 `json:"high"`
	}{finite(i.Low), finite(i.High)})
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// Estimate is what some observations say about the mean of all there could be.
type Estimate struct {
	N        int      `json:"n"`
	Mean     float64  `json:"mean"`
	SD       float64  `json:"sd"` // of the observations, with n-1; 0 for fewer than two
	Interval Interval `json:"interval"`
}

// Wilson returns Wilson's score interval of a proportion: k of n. It stays within 0 and
// 1 and is good for small n and for k of 0 or n. With no observations it is all of 0 to 1.
func Wilson(k, n int, confidence float64) Interval {
	z := normalQuantile(confidence)
	if n <= 0 || math.IsInf(z, 1) {
		return Interval{0, 1}
	}
	k = min(max(k, 0), n)
	f, p := float64(n), float64(k)/float64(n)
	zz := float64(z * z) // the conversions keep products from being fused, which only some processors do
	denominator := 1 + zz/f
	centre := (p + zz/(2*f)) / denominator
	half := z / denominator * math.Sqrt(float64(p*(1-p))/f+zz/float64(4*f*f))
	i := Interval{max(0, centre-half), min(1, centre+half)}
	if k == 0 {
		i.Low = 0 // exactly, whatever rounding left
	}
	if k == n {
		i.High = 1
	}
	return i
}

// Mean returns the mean of xs with Student's t interval. With fewer than two
// observations the interval is unbounded.
func Mean(xs []float64, confidence float64) Estimate {
	var t Tally
	for _, x := range xs {
		t.Add(x)
	}
	return t.Mean(confidence)
}

// Of returns the mean of xs with the interval that fits: Wilson's where every
// observation is 0 or 1, Student's otherwise.
func Of(xs []float64, confidence float64) Estimate {
	var t Tally
	for _, x := range xs {
		t.Add(x)
	}
	return t.Estimate(confidence)
}

// student returns the t interval of a mean.
func student(n int, mean, sd, confidence float64) Interval {
	if n < 2 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	half := float64(tQuantile(n-1, confidence) * sd / math.Sqrt(float64(n)))
	if math.IsNaN(half) { // no spread, and a confidence that nothing reaches
		half = math.Inf(1)
	}
	return Interval{mean - half, mean + half}
}

// normalQuantile returns z such that a normal variable is within ±z with the given
// confidence; a confidence that is none needs everything.
func normalQuantile(confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) {
		return math.Inf(1)
	}
	return math.Sqrt2 * math.Erfinv(confidence)
}

// tQuantile is normalQuantile for Student's t with df degrees of freedom. If T is such
// a variable then T²/(df+T²) has the beta distribution of 1/2 and df/2; the half of it
// that is small is inverted, where floating point has room.
func tQuantile(df int, confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) || df < 1 {
		return math.Inf(1)
	}
	f := float64(df)
	if x := mathext.InvRegIncBeta(0.5, f/2, confidence); x < 0.5 {
		return math.Sqrt(f * x / (1 - x))
	}
	y := mathext.InvRegIncBeta(f/2, 0.5, 1-confidence)
	return math.Sqrt(f * (1 - y) / y)
}
