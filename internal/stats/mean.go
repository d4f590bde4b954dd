package stats

import (
	"math"
	"slices"
)

// Estimate is what some observations say about the mean of all there could be.
type Estimate struct {
	N        int      `json:"n"` // 0 where one was not a finite number: then nothing is known
	Mean     float64  `json:"mean"`
	SD       float64  `json:"sd"` // of the observations, with n-1; 0 for fewer than two
	Interval Interval `json:"interval"`
	Method   string   `json:"method"` // what the interval is: "t" or "wilson"
}

// Quantity returns the same in the form that all numbers have.
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
	if math.IsNaN(half) { // no spread, and a confidence that nothing reaches
		half = math.Inf(1)
	}
	return Interval{Low: mean - half, High: mean + half}
}

// PairedDifference returns the mean of a[i]-b[i], which stand for the same deal, with
// Student's t interval. Where they are not of one length nothing is known.
func PairedDifference(a, b []float64, confidence float64) Quantity {
	if len(a) != len(b) {
		return Unknown(min(len(a), len(b)), "t, paired")
	}
	var t Tally
	for i := range a {
		t.Add(a[i] - b[i])
	}
	e := t.Mean(confidence)
	q := e.Quantity()
	q.Method = "t, paired"
	if unless(e.SD*e.SD, append(slices.Clone(a), b...)...) == 0 {
		q.Interval = everything() // pairs that all differ alike do not tell how much others would vary
	}
	return q
}

// MeanDifference returns the mean of a less the mean of b, which have nothing to do with
// each other, with Welch's interval. N is the smaller of the two.
func MeanDifference(a, b []float64, confidence float64) Quantity {
	w := compareMeans(a, b)
	q := Quantity{Value: w.difference, Interval: everything(), N: w.n, Method: "welch"}
	if w.df > 0 && unless(w.se*w.se, append(slices.Clone(a), b...)...) > 0 {
		q.Interval = student(w.difference, w.se, w.df, confidence)
	}
	return q
}

// Welch tests whether the means of a and b, which have nothing to do with each other,
// differ. It does not take them to have the same spread.
func Welch(a, b []float64) Test {
	w := compareMeans(a, b)
	if !(w.df > 0) || w.se == 0 {
		return Test{P: math.NaN(), N: w.n, Method: "welch"}
	}
	return Test{P: tTails(w.difference/w.se, w.df), N: w.n, Method: "welch"}
}

// welch is a difference of means. Without degrees of freedom nothing is known of its
// spread.
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
		// Shares of the variance first: squares of small variances would be 0.
		sx, sy := vx/(vx+vy), vy/(vx+vy)
		w.df = 1 / (sx*sx/float64(x.n-1) + sy*sy/float64(y.n-1))
	}
	return w
}
