package stats

import "math"

// Tally folds observations one by one, in little memory. The zero value is empty.
type Tally struct {
	n        int
	mean, m2 float64 // m2 is the sum of squared distances from the mean
	ones     int     // how many were exactly 1
	other    bool    // something was neither 0 nor 1
}

// Add takes in one observation. It is Welford's method: exact enough whatever the size
// of the mean.
func (t *Tally) Add(x float64) {
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

// N returns how many observations there were.
func (t *Tally) N() int { return t.n }

// Mean returns the mean with Student's t interval.
func (t *Tally) Mean(confidence float64) Estimate {
	e := Estimate{N: t.n, Mean: t.mean}
	if t.n > 1 {
		e.SD = math.Sqrt(max(0, t.m2) / float64(t.n-1))
	}
	e.Interval = student(t.n, e.Mean, e.SD, confidence)
	return e
}

// Estimate returns the mean with the interval that fits: Wilson's where every
// observation was 0 or 1, Student's otherwise.
func (t *Tally) Estimate(confidence float64) Estimate {
	e := t.Mean(confidence)
	if t.n > 0 && !t.other {
		e.Mean = float64(t.ones) / float64(t.n)
		e.Interval = Wilson(t.ones, t.n, confidence)
	}
	return e
}
