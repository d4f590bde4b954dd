// Package stats has the values that statistics are reported in: a number with its interval, and the result of a test.
//
// The values are plain data. An unknown number is NaN and an unknown end of an interval is infinite; JSON writes both
// as null. This package computes nothing: package world does, with Sample and Paired.
package stats

import (
	"encoding/json"
	"fmt"
	"math"
)

// Interval is a range that holds the true value with the confidence asked for. An unknown
// end is infinite, which JSON writes as null.
type Interval struct {
	Low, High float64
}

// Everything returns the interval without bounds.
func Everything() Interval { return Interval{Low: math.Inf(-1), High: math.Inf(1)} }

// Half returns half of the interval's width: the number after ±.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// Holds reports whether x is within the interval, ends included. If the interval of a
// difference holds 0, the data do not show which side is ahead.
func (i Interval) Holds(x float64) bool { return i.Low <= x && x <= i.High }

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

// Quantity is a number with its interval. Every estimate is one.
type Quantity struct {
	Value    float64 // NaN if unknown
	Interval         // the whole possible range if unknown
	N        int     // the number of independent observations: episodes, pairs, clusters
	Method   string  // how the interval was computed, such as "wilson", "t", "cluster wilson" or "cluster t"
}

// Constant is the Method of a mean of values that are all equal, unless they are shares of 0 or 1: they do not show how much others would
// differ, so its interval is unknown.
const Constant = "constant"

// Unknown returns a quantity without a value, from n observations.
func Unknown(n int, method string) Quantity {
	return Quantity{Value: math.NaN(), Interval: Everything(), N: n, Method: method}
}

// Known reports whether there is a value. Its interval may still be unbounded.
func (q Quantity) Known() bool { return !math.IsNaN(q.Value) }

// MarshalJSON writes {"value": …, "low": …, "high": …, "n": …, "method": …}, with null
// for what is unknown. Do not embed a Quantity in a struct that is written as JSON,
// because the struct would inherit this method.
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

// Test is the result of a test of "there is no difference".
type Test struct {
	P      float64 // the probability of a difference this large by chance; NaN if unknown
	N      int     // the number of independent observations
	Method string
}

// Known reports whether P is known.
func (t Test) Known() bool { return !math.IsNaN(t.P) }

// MarshalJSON writes {"p": …, "n": …, "method": …}, with null for an unknown P.
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
