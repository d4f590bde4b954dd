package statmath

import (
	"math"
	"slices"
)

// Estimate is an estimate of a mean from observations.
type Estimate struct {
	N        int      `json:"n"` // 0 if an observation was not finite: then nothing is known
	Mean     float64  `json:"mean"`
	SD       float64  `json:"sd"` // of the observations, with n-1; 0 for fewer than two
	Interval Interval `json:"interval"`
	Method   string   `json:"method"` // how the interval was computed: "t" or "wilson"
}

// Quantity returns the estimate as a Quantity.
func (e Estimate) Quantity() Quantity {
	if e.N == 0 {
		return Unknown(0, e.Method)
	}
	return Quantity{Value: e.Mean, Interval: e.Interval, N: e.N, Method: e.Method}
}

// Mean returns the mean of xs with Student's t interval. With fewer than two
// observations the interval is unbounded.
func Mean(xs []float64, confidence float64) Estimate {
	t := tallied(xs)
	return t.Mean(confidence)
}

// Of returns the mean of xs with the interval that fits: Wilson's where every
// observation is 0 or 1, Student's otherwise.
func Of(xs []float64, confidence float64) Estimate {
	t := tallied(xs)
	return t.Estimate(confidence)
}

// student returns the t interval of a mean with a standard error.
func student(mean, se, df, confidence float64) Interval {
	half := float64(tQuantile(df, confidence) * se)
	if math.IsNaN(half) { // no spread, and an infinite quantile
		half = math.Inf(1)
	}
	return Interval{Low: mean - half, High: mean + half}
}

// PairedDifference returns the mean of a[i]-b[i], which are from the same deal, with
// Student's t interval. The result is unknown if the lengths differ.
func PairedDifference(a, b []float64, confidence float64) Quantity {
	if len(a) != len(b) {
		return Unknown(min(len(a), len(b)), "t, paired")
	}
	var t tally
	for i := range a {
		t.Add(a[i] - b[i])
	}
	e := t.Mean(confidence)
	q := e.Quantity()
	q.Method = "t, paired"
	if unlessRounding(e.SD*e.SD, slices.Concat(a, b)...) == 0 {
		q.Interval = everything() // equal differences do not show how much others would vary
	}
	return q
}

// MeanDifference returns the mean of a less the mean of b, which are independent of
// each other, with Welch's interval. N is the size of the smaller one.
func MeanDifference(a, b []float64, confidence float64) Quantity {
	w := compareMeans(a, b)
	q := Quantity{Value: w.difference, Interval: everything(), N: w.n, Method: "welch"}
	if w.df > 0 && unlessRounding(w.se*w.se, slices.Concat(a, b)...) > 0 {
		q.Interval = student(w.difference, w.se, w.df, confidence)
	}
	return q
}

// Welch tests whether the means of a and b, which are independent of each other,
// differ. Their spreads need not be equal.
func Welch(a, b []float64) Test {
	w := compareMeans(a, b)
	if !(w.df > 0) || w.se == 0 {
		return Test{P: math.NaN(), N: w.n, Method: "welch"}
	}
	return Test{P: tTails(w.difference/w.se, w.df), N: w.n, Method: "welch"}
}

// welch is a difference of means. If df is 0, its spread is unknown.
type welch struct {
	difference, se, df float64
	n                  int
}

func compareMeans(a, b []float64) welch {
	x, y := tallied(a), tallied(b)
	w := welch{difference: math.NaN(), n: min(len(a), len(b))}
	if w.n == 0 || !x.sound() || !y.sound() {
		return w
	}
	if d := x.mean - y.mean; isFinite(d) {
		w.difference = d
	}
	if w.n < 2 || math.IsNaN(w.difference) {
		return w
	}
	vx, vy := x.variance()/float64(x.n), y.variance()/float64(y.n)
	w.se = math.Sqrt(vx + vy)
	w.df = float64(x.n + y.n - 2)
	if w.se > 0 {
		// Divide first: squares of small variances would underflow to 0.
		sx, sy := vx/(vx+vy), vy/(vx+vy)
		w.df = 1 / (sx*sx/float64(x.n-1) + sy*sy/float64(y.n-1))
	}
	return w
}
