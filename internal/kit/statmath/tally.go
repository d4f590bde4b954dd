package statmath

import "math"

// tally estimates a mean from observations added one by one, in constant memory. The zero value is empty. The
// same observations in the same order give the same digits, so add them in episode order.
type tally struct {
	n        int
	mean, m2 float64 // m2 is the sum of squared distances from the mean
	ones     int     // how many were exactly 1
	other    bool    // something was neither 0 nor 1
}

func tallied(xs []float64) tally {
	var t tally
	for _, x := range xs {
		t.Add(x)
	}
	return t
}

// Add adds an observation, by Welford's method, which stays precise for any size of the mean.
func (t *tally) Add(x float64) {
	t.n++
	d := x - t.mean
	t.mean += d / float64(t.n)
	t.m2 += float64(d * (x - t.mean))
	switch x {
	case 0:
	case 1:
		t.ones++
	default:
		t.other = true
	}
}

// N returns the number of observations.
func (t *tally) N() int { return t.n }

// sound reports whether all observations were finite, and small enough to be squared.
func (t *tally) sound() bool { return isFinite(t.mean) && isFinite(t.m2) }

func (t *tally) variance() float64 {
	if t.n < 2 {
		return 0
	}
	return max(0, t.m2) / float64(t.n-1)
}

// Mean returns the mean with Student's t interval.
func (t *tally) Mean(confidence float64) Estimate {
	e := Estimate{Interval: everything(), Method: "t"}
	if !t.sound() {
		return e
	}
	e.N, e.Mean = t.n, t.mean
	if t.n > 1 {
		e.SD = math.Sqrt(t.variance())
		e.Interval = student(e.Mean, e.SD/math.Sqrt(float64(t.n)), float64(t.n-1), confidence)
	}
	return e
}

// Estimate returns the mean with Wilson's interval if every observation was 0 or 1, and Student's otherwise.
func (t *tally) Estimate(confidence float64) Estimate {
	e := t.Mean(confidence)
	if t.n > 0 && !t.other {
		e.Mean = float64(t.ones) / float64(t.n)
		e.Interval = Wilson(t.ones, t.n, confidence)
		e.Method = "wilson"
	}
	return e
}
